"""`DatasetRuntime`: checks arguments, calls the native runtime, wraps what it returns."""

from collections.abc import Sequence
from inspect import getattr_static
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from dataset_rt._native import Runtime, check_reader_config
from dataset_rt.config import DEFAULT_WRITER_CONFIG, ReaderConfig, WriterConfig
from dataset_rt.dataset import CachedDataset
from dataset_rt.paths import path_text
from dataset_rt.records import (
    CacheSourcesDatasetError,
    CacheSourcesDatasetResult,
    CacheSourcesDatasetSuccess,
    CacheWriteError,
    CacheWriteResult,
    CacheWriteSuccess,
)

if TYPE_CHECKING:
    from types import TracebackType
    from typing import NoReturn

    from dataset_rt.protocols import CacheSource

ConfigT = TypeVar("ConfigT", ReaderConfig, WriterConfig)


class DatasetRuntime:
    """A fixed number of native threads, and the operations that run on them.

    One runtime serves a whole program. Datasets opened through it share its threads and keep them alive, also after
    `close`. A runtime is a context manager.

    Examples:
        >>> with DatasetRuntime(num_workers=2) as runtime:
        ...     runtime.write_cache([], "caches")
        []
    """

    __slots__ = ("__weakref__", "_native")

    def __init__(self, *, num_workers: int) -> None:
        self._native = Runtime(num_workers)

    @property
    def num_workers(self) -> int:
        """Number of native threads."""
        return self._native.num_workers

    def write_cache(
        self,
        sources: "CacheSource | Sequence[CacheSource]",
        path: str | Path,
        *,
        writer_config: WriterConfig = DEFAULT_WRITER_CONFIG,
    ) -> list[CacheWriteResult]:
        """Write each source as a new cache in the directory `path / source.name`.

        Returns one result for each source, in the order of the sources. A source that fails leaves nothing behind and
        does not disturb the others; an exception that is no `Exception`, such as `KeyboardInterrupt`, ends the call.
        A relative `path` is taken from the working directory at the time of the call; paths in results are absolute.

        With `num_processes > 0` sources are written by spawned processes that have `num_workers` native threads each.
        A source must then be picklable, and its class importable; the program needs a main guard. When such a process
        dies or takes longer than `process_timeout_seconds`, all are stopped, and what is not finished is not tried
        again. An exception that ends the call is then an equal object. A profiler keeps the write in this process.
        """
        return self._write(sources, path, writer_config, reuse=False)

    def cached_dataset(self, paths: Sequence[str | Path], *, reader_config: ReaderConfig) -> CachedDataset:
        """Open caches as one dataset."""
        config = _checked(reader_config, ReaderConfig, "reader_config")
        if isinstance(paths, (str, bytes, bytearray)) or not isinstance(paths, Sequence):
            raise TypeError(
                f"paths must be a sequence of str or Path, found {type(paths).__name__}; put a single path into a list"
            )
        directories = [path_text(path, f"paths[{position}]") for position, path in enumerate(paths)]
        native = self._native.open(directories, config)
        return CachedDataset._over(native, config)

    def from_cache_sources(
        self,
        sources: "CacheSource | Sequence[CacheSource]",
        path: str | Path,
        *,
        reader_config: ReaderConfig,
        writer_config: WriterConfig = DEFAULT_WRITER_CONFIG,
    ) -> CacheSourcesDatasetResult:
        """Open the cache of each source under `path`, writing those that do not exist, as one dataset.

        An existing cache is known by its name, and by the fingerprint where both the source and the cache have one.
        """
        check_reader_config(_checked(reader_config, ReaderConfig, "reader_config"))
        results = self._write(sources, path, writer_config, reuse=True)
        directories = [result.path for result in results if isinstance(result, CacheWriteSuccess)]
        if not directories:
            return CacheSourcesDatasetError(results, f"no cache could be loaded: {_why_none(results)}")
        try:
            dataset = self.cached_dataset(directories, reader_config=reader_config)
        except (ValueError, OSError) as error:
            return CacheSourcesDatasetError(results, f"no cache could be loaded: {error}")
        return CacheSourcesDatasetSuccess(dataset, results)

    def _write(
        self, sources: "CacheSource | Sequence[CacheSource]", path: str | Path, config: WriterConfig, *, reuse: bool
    ) -> list[CacheWriteResult]:
        config = _checked(config, WriterConfig, "writer_config")
        # From here on code of the sources may run, and may change the working directory.
        base = str(Path(path_text(path, "path")).absolute())
        listed = _listed(sources)
        # The stages of several processes do not add up to the time of one call.
        if config.num_processes == 0 or config.profiler.enabled:
            outcomes = self._native.write(listed, base, config, reuse=reuse)
        else:
            # What serial programs never need: multiprocessing and all it imports.
            from dataset_rt.processes.write import write_in_processes

            outcomes = write_in_processes(self._native, listed, base, config, reuse=reuse)
        return [
            CacheWriteError(name, outcome) if isinstance(outcome, str) else CacheWriteSuccess(name, outcome)
            for name, outcome in outcomes
        ]

    def close(self) -> None:
        """Refuse further calls and end the threads, unless a dataset still needs them. Closing again does nothing."""
        self._native.close()

    def __enter__(self) -> Self:
        self._native.check_open()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        self.close()

    def __reduce__(self) -> "NoReturn":
        raise TypeError(
            "a DatasetRuntime cannot be pickled or copied: its threads belong to this process; create another one where it is needed"
        )

    def __repr__(self) -> str:
        return f"DatasetRuntime(num_workers={self.num_workers}{', closed' if self._native.closed else ''})"


def _why_none(results: list[CacheWriteResult]) -> str:
    """What to say when no source has a cache."""
    failed = [result for result in results if isinstance(result, CacheWriteError)]
    if not failed:
        return "no source was given"
    first = f'source "{failed[0].source_name}" failed: {failed[0].message}'
    return first if len(failed) == 1 else f"{first}; so did all {len(failed)} sources, see results"


def _listed(sources: "CacheSource | Sequence[CacheSource]") -> list["CacheSource"]:
    """One source or a sequence of them, as a list. What has a name is a source, even if it is also a sequence."""
    kind = type(sources)
    if isinstance(sources, (str, bytes, bytearray, memoryview)):
        single, several = False, False
    else:
        single = (hasattr(kind, "__iter__") or hasattr(kind, "__getitem__")) and _has_name(sources)
        several = not single and isinstance(sources, Sequence)
    if several:
        return list(sources)  # type: ignore[arg-type]  # what is several is a sequence
    if not single:
        raise TypeError(
            f"sources must be a cache source (an iterable with a name) or a sequence of them, found {kind.__name__}"
        )
    return [sources]  # type: ignore[list-item]  # what is single is a source


def _has_name(candidate: object) -> bool:
    """Whether there is a name, without reading it where that can be told: it may be a property, which is read once later."""
    if getattr_static(candidate, "name", _MISSING) is not _MISSING:
        return True
    if not hasattr(type(candidate), "__getattr__"):
        return False
    try:
        return hasattr(candidate, "name")
    except Exception:  # it is told when the source is
        return True


_MISSING = object()


def _checked(config: ConfigT, kind: type[ConfigT], argument: str) -> ConfigT:
    if not isinstance(config, kind):
        raise TypeError(f"{argument} must be a {kind.__name__}, found {type(config).__name__}")
    return config
