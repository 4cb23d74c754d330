"""G, C6: memory that the system does not give is a `MemoryError` or the error of its source, never an abort."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import numbered, run_python, write

import dataset_rt as drt

# An address space with room for little more than what is there; as `ulimit -v` does.
LIMIT = """
import resource, sys
import dataset_rt as drt
from support import QUIET, Listed, numbered

def leave(room):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.getrlimit(resource.RLIMIT_AS)[1]))
"""

WRITE = (
    LIMIT
    + """
class Large:
    name = "large"

    def __iter__(self):
        payload, metadata = PAYLOADS[sys.argv[2]]()
        # Threads take their stacks and arenas before.
        leave(100 << 20)
        yield payload, metadata

PAYLOADS = {
    "bytearray": lambda: (bytearray(150 << 20), {"row": 0}),
    "strided": lambda: (memoryview(bytearray(300 << 20))[::2], {"row": 0}),
    "text": lambda: (b"", {"row": "x" * (150 << 20)}),
    "lz4": lambda: (bytes(150 << 20), {"row": 0}),
}
algo = "lz4" if sys.argv[2] == "lz4" else "none"
config = QUIET.model_copy(update={"shard_compression": drt.ShardCompression(algo=algo)})
with drt.DatasetRuntime(num_workers=1) as runtime:
    runtime.write_cache(numbered("warm", 300), sys.argv[1], writer_config=config)
    large, good = runtime.write_cache([Large(), numbered("good", 3)], sys.argv[1], writer_config=config)
    print(large.message)
    print(type(good).__name__)
"""
)


@pytest.mark.parametrize("kind", ["bytearray", "strided", "text", "lz4"])
def test_c06_no_memory_for_a_sample_is_the_error_of_its_source(tmp_path: Path, kind: str) -> None:
    done = run_python(WRITE, str(tmp_path), kind)
    assert (done.returncode, done.stderr) == (0, "")
    message, other = done.stdout.splitlines()
    assert "row 0" in message
    # Compressed it may take more.
    assert re.search(r"cannot allocate 1[57]\d{7} bytes for a ", message)
    assert other == "CacheWriteSuccess"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good", "tmp", "warm"]
    assert list((tmp_path / "tmp").iterdir()) == []


READ = (
    LIMIT
    + """
with drt.DatasetRuntime(num_workers=1) as runtime:
    dataset = runtime.cached_dataset([sys.argv[1]], reader_config=drt.ReaderConfig(seed=1, shuffle=False))
    identity = int(dataset.get_metadata()["cache_id"][0])
    leave(100 << 20)
    for read in (lambda: dataset.get_item(identity, 0), lambda: next(iter(dataset))):
        try:
            read()
        except MemoryError as error:
            print(error)
    print(len(dataset.get_item(identity, 1).data))
"""
)


def test_g_no_memory_for_a_payload_is_a_memory_error(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    class Two:
        name = "two"

        def __iter__(self) -> Iterator[Any]:
            yield bytes(150 << 20), {"row": 0}
            yield b"small", {"row": 1}

    [path] = write(runtime, tmp_path, Two(), shard_compression=drt.ShardCompression(algo="lz4"))
    done = run_python(READ, str(path))
    assert (done.returncode, done.stderr) == (0, "")
    *messages, small = done.stdout.splitlines()
    assert len(messages) == 2
    for message in messages:
        assert f"cannot allocate {150 << 20} bytes for a payload" in message
        assert str(path) in message
    assert small == "5"


UPDATE = (
    LIMIT
    + """
import polars as pl
with drt.DatasetRuntime(num_workers=1) as runtime:
    dataset = runtime.cached_dataset([sys.argv[1]], reader_config=drt.ReaderConfig(seed=1, shuffle=False))
    frame = dataset.get_metadata()
    next(iter(dataset))
    table = pl.concat([frame] * 5000).with_columns(weight=pl.int_range(pl.len()) + 1.0).rechunk().to_arrow()
    leave(15 << 20)
    try:
        dataset.update_metadata(table)
    except MemoryError as error:
        print(error)
    print(len(dataset))
"""
)


def test_d10_no_memory_for_a_table_is_a_memory_error_and_changes_nothing(
    runtime: drt.DatasetRuntime, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    [path] = write(runtime, tmp_path, numbered("a", 1000))
    done = run_python(UPDATE, str(path))
    assert (done.returncode, done.stderr) == (0, "")
    message, rows = done.stdout.splitlines()
    assert "cannot allocate 40000000 bytes for a column of the table" in message
    assert rows == "1000"
