"""Sources and shortcuts that many tests use."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dataset_rt as drt

Row = tuple[Any, Mapping[Any, Any]]


class Listed:
    """A source that yields what it was given."""

    def __init__(self, name: str, rows: Iterable[Any]) -> None:
        self.name = name
        self.rows = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)


QUIET = drt.WriterConfig(show_progress=False)


def numbered(name: str, count: int, size: int = 8) -> Listed:
    """Rows that say which they are: payload and the column `number` hold the row."""
    return Listed(name, [(row.to_bytes(size, "little"), {"number": row}) for row in range(count)])


def write(runtime: drt.DatasetRuntime, base: Path, *sources: Any, **config: Any) -> list[Path]:
    """Write sources that must succeed."""
    results = runtime.write_cache(list(sources), base, writer_config=drt.WriterConfig(show_progress=False, **config))
    failed = [result for result in results if isinstance(result, drt.CacheWriteError)]
    assert not failed
    return [result.path for result in results if isinstance(result, drt.CacheWriteSuccess)]


def write_error(runtime: drt.DatasetRuntime, base: Path, source: Any) -> str:
    """Write one source that must fail, and return the reason."""
    [result] = runtime.write_cache(source, base, writer_config=QUIET)
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
