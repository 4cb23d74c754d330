"""Sources and shortcuts that many tests use."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dataset_rt as drt

QUIET = drt.WriterConfig(show_progress=False)


class Listed:
    """A source that yields what it was given."""

    def __init__(self, name: Any, rows: Iterable[Any]) -> None:
        self.name = name
        self.rows = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)


class Failing:
    """A source that yields some rows and then raises."""

    def __init__(self, name: str, error: BaseException, rows: Iterable[Any] = ()) -> None:
        self.name = name
        self.error = error
        self.rows = rows

    def __iter__(self) -> Iterator[Any]:
        yield from self.rows
        raise self.error


def numbered(name: str, count: int, size: int = 8) -> Listed:
    """Rows that say which they are: payload and the column `number` hold the row."""
    return Listed(name, [(row.to_bytes(size, "little"), {"number": row}) for row in range(count)])


def write(runtime: drt.DatasetRuntime, base: Path, *sources: Any, **config: Any) -> list[Path]:
    """Write sources that must succeed."""
    results = runtime.write_cache(list(sources), base, writer_config=QUIET.model_copy(update=config))
    assert [result for result in results if isinstance(result, drt.CacheWriteError)] == []
    return [result.path for result in results if isinstance(result, drt.CacheWriteSuccess)]


def write_error(runtime: drt.DatasetRuntime, base: Path, source: Any) -> str:
    """Write one source that must fail, and return the reason."""
    [result] = runtime.write_cache([source], base, writer_config=QUIET)
    assert isinstance(result, drt.CacheWriteError)
    return result.message


def opened(
    runtime: drt.DatasetRuntime, paths: Sequence[Path], *, seed: int = 7, shuffle: bool = False, **config: Any
) -> drt.CachedDataset:
    """Open caches, in table order unless told otherwise."""
    return runtime.cached_dataset(paths, reader_config=drt.ReaderConfig(seed=seed, shuffle=shuffle, **config))


def round_trip(runtime: drt.DatasetRuntime, base: Path, rows: Iterable[Any]) -> list[drt.CachedSample]:
    """Write rows as one cache and read them back in order."""
    return list(opened(runtime, write(runtime, base, Listed("rows", rows))))


def numbers(samples: Iterable[drt.CachedSample]) -> list[int]:
    """What the column `number` of samples says."""
    return [int(sample.metadata["number"]) for sample in samples]


def break_record(path: Path, row: int) -> None:
    """Make the record of a row claim more metadata than it holds."""
    index = (path / "index.bin").read_bytes()[row * 24 : row * 24 + 24]
    offset = int.from_bytes(index[8:16], "little")
    shard = path / "shards" / f"{int.from_bytes(index[:8], 'little'):06}.bin"
    content = bytearray(shard.read_bytes())
    content[offset : offset + 8] = b"\xff" * 8
    shard.write_bytes(content)


def run_python(program: str, *arguments: str, timeout: float = 240, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter of its own, with this one's search path."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        **options,
    )


EXAMPLES = Path(__file__).parents[2] / "examples"


def run_example(folder: Path, example: str, *arguments: str) -> str:
    """Run an example as a user would, in a directory of its own; give what it says. It must leave no caches behind."""
    environment = os.environ | {"TMPDIR": str(folder / "tmp")}
    (folder / "tmp").mkdir()
    finished = subprocess.run(
        [sys.executable, str(EXAMPLES / example), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert finished.returncode == 0, finished.stderr
    # What torch leaves is its own affair.
    assert [entry.name for entry in (folder / "tmp").iterdir() if not entry.name.startswith("torch")] == []
    return finished.stdout


@contextlib.contextmanager
def files_end_at(length: int) -> Iterator[None]:
    """No file of this process grows beyond a length meanwhile: as on a full disk, writes fail with an `OSError`."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores the signal already, but who embeds it may not.
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)


def native_threads(expected: int | None = None) -> list[str]:
    """Names of the native threads of this process that are ours; a thread takes its name a moment after it started."""
    deadline = time.monotonic() + 10
    while True:
        names = []
        for task in Path("/proc/self/task").iterdir():
            with contextlib.suppress(FileNotFoundError):
                names.append((task / "comm").read_text().strip())
        names = sorted(name for name in names if name.startswith("drt-"))
        if expected in (None, len(names)) or time.monotonic() > deadline:
            return names
