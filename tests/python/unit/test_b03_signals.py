"""B3: long native phases let other threads run and see signals on the main thread."""

import collections
import itertools
import mmap
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from support import QUIET, Listed, numbered, opened, write

import dataset_rt as drt

LZ4 = {"shard_compression": drt.ShardCompression(algo="lz4")}

# Seconds. The contract says 0.2 on a machine that has time; here it must only be clear that nobody waited for the end.
PROMPTLY = 1.0


class Stop(BaseException):
    """What the signal handler raises."""


@pytest.fixture
def stop_after() -> Iterator[Callable[[float], None]]:
    """Raises `Stop` out of whatever runs when the time is over."""

    def handler(_number: int, _frame: FrameType | None) -> None:
        raise Stop

    previous = signal.signal(signal.SIGALRM, handler)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds) and None
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, previous)


def stopped(operation: Callable[[], Any], stop_after: Callable[[float], None], after: float = 0.1) -> float:
    """Seconds from the signal to the exception."""
    stop_after(after)
    started = time.monotonic()
    with pytest.raises(Stop):
        operation()
    return time.monotonic() - started - after


def endless(payload: Any) -> Listed:
    """A source that runs no Python code of its own: only the writer can notice the signal."""
    return Listed("endless", itertools.repeat((payload, {"a": 1})))


@pytest.mark.parametrize("size", [0, 100, 1 << 20])
@pytest.mark.parametrize("config", [{}, LZ4], ids=["none", "lz4"])
def test_b03_write_sees_signals(
    runtime: drt.DatasetRuntime, tmp_path: Path, stop_after: Callable[[float], None], size: int, config: dict[str, Any]
) -> None:
    def operation() -> None:
        runtime.write_cache(endless(bytes(size)), tmp_path, writer_config=QUIET.model_copy(update=config))

    assert stopped(operation, stop_after) < PROMPTLY
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "payload",
    [mmap.mmap(-1, 4 << 30, mmap.MAP_PRIVATE, mmap.PROT_READ), np.broadcast_to(np.uint8(0), (1, 4 << 30))],
    ids=["whole", "gaps"],
)
def test_b03_copies_of_payloads_see_signals(
    runtime: drt.DatasetRuntime, tmp_path: Path, stop_after: Callable[[float], None], payload: Any
) -> None:
    def operation() -> None:
        runtime.write_cache(endless(payload), tmp_path, writer_config=QUIET)

    assert stopped(operation, stop_after) < PROMPTLY
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("shuffle", [False, True])
def test_b03_iterators_see_signals_and_go_on(
    runtime: drt.DatasetRuntime, tmp_path: Path, stop_after: Callable[[float], None], shuffle: bool
) -> None:
    dataset = opened(runtime, write(runtime, tmp_path, numbered("a", 1000)), shuffle=shuffle)
    dataset.set_epoch_len(2**62)
    iterator = iter(dataset)
    # A consumer in C: no bytecode runs between two samples.
    assert stopped(lambda: collections.deque(iterator, maxlen=0), stop_after) < PROMPTLY
    assert isinstance(next(iterator), drt.CachedSample)


def test_b03_validation_sees_signals(
    runtime: drt.DatasetRuntime, tmp_path: Path, stop_after: Callable[[float], None]
) -> None:
    payload = bytes(32 << 20)
    paths = write(runtime, tmp_path, Listed("a", [(payload, {"row": row}) for row in range(12)]))
    assert stopped(lambda: opened(runtime, paths, validate_cache=True), stop_after, after=0.02) < PROMPTLY
    assert len(opened(runtime, paths)) == 12


def test_b03_table_updates_see_signals(
    runtime: drt.DatasetRuntime, tmp_path: Path, stop_after: Callable[[float], None]
) -> None:
    import polars as pl

    # Weights that differ, and draws by them: some tenths of a second.
    dataset = opened(runtime, write(runtime, tmp_path, numbered("a", 1000)), shuffle=True)
    # In one piece: what polars does before it hands a table over is not ours to interrupt.
    table = pl.concat([dataset.get_metadata()] * 10_000, rechunk=True)
    table = table.with_columns(weight=pl.int_range(1, len(table) + 1))
    assert stopped(lambda: dataset.update_metadata(table), stop_after, after=0.02) < PROMPTLY
    assert len(dataset) == 1000


def test_b03_exports_see_signals_both_ways(
    runtime: drt.DatasetRuntime, tmp_path: Path, stop_after: Callable[[float], None]
) -> None:
    import polars as pl

    dataset = opened(runtime, write(runtime, tmp_path, numbered("a", 1000)))
    dataset.update_metadata(pl.concat([dataset.get_metadata()] * 4000, rechunk=True))
    out = tmp_path / "out"
    out.mkdir()
    assert stopped(lambda: dataset.dump_config(out), stop_after, after=0.02) < PROMPTLY
    assert list(out.iterdir()) == []
    config = dataset.dump_config(out)
    assert stopped(lambda: drt.CachedDataset.from_config(config), stop_after, after=0.02) < PROMPTLY
    with drt.CachedDataset.from_config(config) as loaded:
        assert len(loaded) == 4_000_000


@pytest.mark.parametrize("config", [{}, LZ4], ids=["none", "lz4"])
def test_b03_single_reads_see_signals_and_let_others_in(
    runtime: drt.DatasetRuntime, tmp_path: Path, stop_after: Callable[[float], None], config: dict[str, Any]
) -> None:
    rows = [(random.Random(1).randbytes(1 << 20) * 256, {"row": 0})]
    dataset = opened(runtime, write(runtime, tmp_path, Listed("a", rows), **config))
    [cache_id] = dataset.get_metadata()["cache_id"]
    assert dataset.get_item(cache_id, 0).data == rows[0][0]
    assert laps_during(lambda: dataset.get_item(cache_id, 0)) >= ENOUGH_LAPS
    if not config:
        # A copy is given up between two pieces; a compressed block is not.
        assert stopped(lambda: [dataset.get_item(cache_id, 0) for _ in range(50)], stop_after, after=0.05) < PROMPTLY


# An operation that keeps others out leaves them hardly any.
ENOUGH_LAPS = 10


def laps_during(operation: Callable[[], Any]) -> int:
    """How often another thread could run between two looks at the clock while the operation lasted."""
    laps = 0
    done = threading.Event()

    def count() -> None:
        nonlocal laps
        while not done.is_set():
            laps += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = laps
    try:
        operation()
        return laps - before
    finally:
        done.set()
        thread.join()


def test_b03_other_threads_run_during_a_write(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    rows = [(bytes(8 << 20), {"row": row}) for row in range(24)]
    assert laps_during(lambda: write(runtime, tmp_path, Listed("a", rows), **LZ4)) >= ENOUGH_LAPS


def test_b03_other_threads_run_during_validation(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    payload = bytes(32 << 20)
    paths = write(runtime, tmp_path, Listed("a", [(payload, {"row": row}) for row in range(8)]))
    assert laps_during(lambda: opened(runtime, paths, validate_cache=True)) >= ENOUGH_LAPS


def test_b03_other_threads_run_while_a_c_consumer_iterates(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    dataset = opened(runtime, write(runtime, tmp_path, numbered("a", 1000)))
    dataset.set_epoch_len(2_000_000)
    assert laps_during(lambda: collections.deque(dataset, maxlen=0)) >= ENOUGH_LAPS
