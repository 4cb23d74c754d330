"""Writes caches in worker processes that are killed, or whose parent is. Run as `kills.py FOLDER VICTIM PART`.

Each call repeats the write that was killed in the call before, and gets killed in the next one. Prints how many kills came at
a row, and how many later.
"""

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from processes.sources import Killed
from support import QUIET

import dataset_rt as drt

ROWS = 50
PARTS = 4
SERIAL = QUIET.model_copy(update={"max_shard_bytes": 5000})
PROCESSES = SERIAL.model_copy(update={"num_processes": 1})
# How a process tells that its worker process was killed.
SAW_A_KILL = 10


def moments(part: int) -> list[tuple[int | str, float]]:
    """When to kill, and how many seconds after that: the parts have different rows, all of them together have each."""
    rows = [(row, step % 4 * 0.00008) for step, row in enumerate(range(part % 2, ROWS + 1, 2))]
    # The last one is a cache that has its place.
    files = ["checksums.bin", "index.bin", "metadata.arrow", "manifest.json", "nothing"][part % 2 :: 2]
    return [*rows, *[(file, part * 0.0002) for file in files]]


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def in_process(work: Callable[[], int]) -> int:
    """Run something in a process of its own and wait for that and all it has started. Gives its exit code."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(work())
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    code = None
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            break
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
    assert code is not None
    return code


def write(sources: list[Killed], base: Path, config: drt.WriterConfig) -> int:
    """Write sources, of which the last one may be killed."""
    there = [(base / source.name).exists() for source in sources]
    with drt.DatasetRuntime(num_workers=2) as runtime:
        results = runtime.write_cache(sources, base, writer_config=config)
    killed = 0
    for result, was_there in zip(results, there, strict=True):
        if isinstance(result, drt.CacheWriteError) and not (was_there and "already exists" in result.message):
            assert result is results[-1], result.message
            assert "was killed by signal 9 (SIGKILL)" in result.message, result.message
            killed = SAW_A_KILL
    return killed


def main(folder: Path, victim: str, part: int) -> None:
    # Whoever loses a parent that was killed comes here and can be waited for.
    set_child_subreaper = 36
    assert ctypes.CDLL(None).prctl(set_child_subreaper, 1) == 0
    base, whole = folder / "base", folder / "whole"
    for directory in (base, whole):
        directory.mkdir()
    points = moments(part)
    sources = [Killed(f"s{number}", ROWS, base, victim, at, delay) for number, (at, delay) in enumerate(points)]
    undisturbed = [Killed(source.name, ROWS, whole, victim, "never", 0.0) for source in sources]
    for source in undisturbed:
        (whole / f"{source.name}.flag").touch()
    assert in_process(lambda: write(undisturbed, whole, SERIAL)) == 0
    expected = {source.name: tree(whole / source.name) for source in sources}

    kills = {int: 0, str: 0}
    previous: list[Killed] = []
    for source in sources:
        # Written once more and killed at once.
        calls = [*previous, source]
        code = in_process(lambda calls=calls: write(calls, base, PROCESSES))
        was_killed = code == (SAW_A_KILL if victim == "child" else -signal.SIGKILL)
        assert was_killed or (code == 0 and isinstance(source.at, str)), (source.name, source.at, code)
        kills[type(source.at)] += was_killed
        for repeated in previous:
            assert tree(base / repeated.name) == expected[repeated.name], (repeated.name, repeated.at)
        if (base / source.name).exists():
            assert tree(base / source.name) == expected[source.name], (source.name, source.at)
        # A parent that lives sweeps at once; what is left by one that was killed, the next call sweeps.
        assert len(list((base / "tmp").glob("*"))) <= (victim == "parent" and was_killed), (source.name, source.at)
        previous = [source]
    assert in_process(lambda: write(previous, base, PROCESSES)) == 0
    assert {name: tree(base / name) for name in expected} == expected
    assert list((base / "tmp").glob("*")) == []
    sys.stdout.write(f"{kills[int]} {kills[str]}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
