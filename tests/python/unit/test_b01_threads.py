"""B1, B2: a runtime owns exactly the threads it was asked for, and they stay out of Python."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support import native_threads, numbered, opened, write

import dataset_rt as drt


@pytest.mark.parametrize("count", [1, 5])
def test_b01_owns_exactly_that_many_named_threads(count: int) -> None:
    before = native_threads()
    with drt.DatasetRuntime(num_workers=count) as runtime:
        assert runtime.num_workers == count
        started = native_threads(len(before) + count)
        assert started == sorted([*before, *(f"drt-worker-{number}" for number in range(count))])
    assert native_threads() == before


def test_b01_operations_start_no_threads(tmp_path: Path) -> None:
    before = native_threads()
    with drt.DatasetRuntime(num_workers=2) as runtime:
        all_tasks = len(list(Path("/proc/self/task").iterdir()))
        dataset = opened(runtime, write(runtime, tmp_path, numbered("a", 300), numbered("b", 300)))
        iterator = iter(dataset)
        next(iterator)
        dataset.get_item(next(iterator).cache_id, 7)
        # Reading a table may start threads of polars, which are none of ours.
        assert len(list(Path("/proc/self/task").iterdir())) == all_tasks
        assert len(native_threads()) == len(before) + 2
        dataset.close()
        del iterator
    assert native_threads() == before


@pytest.mark.parametrize("value", [True, 2.0, "2", None, [2]])
def test_b01_other_types_are_refused(value: Any) -> None:
    before = native_threads()
    with pytest.raises(TypeError, match="num_workers must be an int"):
        drt.DatasetRuntime(num_workers=value)
    assert native_threads() == before


@pytest.mark.parametrize("value", [0, -1, 1025, 2**70])
def test_b01_values_out_of_range_are_refused(value: int) -> None:
    before = native_threads()
    with pytest.raises(ValueError, match=rf"num_workers must be 1 ... 1024, found {value}"):
        drt.DatasetRuntime(num_workers=value)
    assert native_threads() == before


def test_b01_num_workers_is_required_and_named() -> None:
    with pytest.raises(TypeError):
        drt.DatasetRuntime()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        drt.DatasetRuntime(2)  # type: ignore[misc]


def test_b02_python_code_runs_on_the_calling_thread_only(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    seen = set()

    class Mapping(dict[str, Any]):
        def items(self) -> Any:
            seen.add(threading.get_ident())
            return super().items()

    class Source:
        name = "a"

        def __iter__(self) -> Any:
            for row in range(500):
                seen.add(threading.get_ident())
                yield b"x" * 100_000, Mapping(row=row)

    write(runtime, tmp_path, Source(), shard_compression=drt.ShardCompression(algo="lz4"))
    assert seen == {threading.get_ident()}


def test_b02_threads_need_no_interpreter_to_finish_a_read(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    rows = [(bytes(300_000), {"row": row}) for row in range(40)]

    class Source:
        name = "a"

        def __iter__(self) -> Any:
            return iter(rows)

    dataset = opened(runtime, write(runtime, tmp_path, Source()))
    iterator = iter(dataset)
    next(iterator)
    # This thread keeps the interpreter for itself; the chunks ahead are read all the same.
    until = time.perf_counter() + 0.2
    while time.perf_counter() < until:
        pass
    assert sum(len(sample.data) for sample in iterator) == 39 * 300_000
