"""The native module: state and operations, without defaults and without names for results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self, final

from dataset_rt.config import ReaderConfig, WriterConfig
from dataset_rt.metadata import ArrowStream
from dataset_rt.protocols import CacheSource
from dataset_rt.records import CachedSample

__all__ = [
    "CacheSummary",
    "Dataset",
    "Runtime",
    "SampleIterator",
    "__version__",
    "check_reader_config",
    "find_staging",
    "sweep_staging",
]

__version__: str

def check_reader_config(config: ReaderConfig) -> None:
    """Raise unless the configuration can be used, however it was made."""

def find_staging(base: str) -> list[tuple[Path, bool]]:
    """Give the staging directories below `base`, each with whether its writer is dead."""

def sweep_staging(base: str) -> None:
    """Remove what writers that are dead left unfinished below `base`."""

@final
class CacheSummary:
    """What a cache consists of, as its manifest and the lengths of its files say."""

    def __new__(cls, path: str) -> Self: ...
    @property
    def path(self) -> Path: ...
    @property
    def format_version(self) -> int: ...
    @property
    def cache_id(self) -> int | None: ...
    @property
    def source_name(self) -> str: ...
    @property
    def fingerprint(self) -> str | None: ...
    @property
    def rows(self) -> int: ...
    @property
    def payload_bytes(self) -> int: ...
    @property
    def file_bytes(self) -> int: ...
    @property
    def shards(self) -> int: ...
    @property
    def compression(self) -> list[Literal["none", "lz4"]]: ...
    @property
    def schema(self) -> list[tuple[str, Literal["bool", "int", "float", "string"]]]: ...
    @property
    def has_record_checksums(self) -> bool: ...

@final
class Runtime:
    """Owner of a fixed number of native threads."""

    def __new__(cls, num_workers: int) -> Self: ...
    @property
    def num_workers(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def check_open(self) -> None:
        """Raise unless the runtime can be used."""
    def write(
        self, sources: Sequence[CacheSource], base: str, config: WriterConfig, *, reuse: bool
    ) -> list[tuple[str, Path | str]]:
        """Write each source below `base`; give its name, and the cache or the reason why there is none.

        With `reuse`, a complete cache that exists is the result of its source.
        """
    def verify(self, path: str, title: str | None) -> None:
        """Verify all checksums of a cache; show progress behind the title if stderr is a terminal and there is one."""
    def open(self, paths: Sequence[str], config: ReaderConfig) -> Dataset:
        """Open caches as one dataset."""
    def open_population(
        self, paths: Sequence[str], config: ReaderConfig, population: str, first: int, stop: int
    ) -> Dataset:
        """Open caches with some rows of a population that another dataset over them exported."""
    def close(self) -> None:
        """End the threads unless a dataset uses them."""

@final
class Dataset:
    """Caches opened together, and the table over them."""

    @property
    def closed(self) -> bool: ...
    def check_open(self) -> None:
        """Raise unless the dataset can be used."""
    def paths(self) -> list[Path]:
        """Give the directories of the caches."""
    def __len__(self) -> int: ...
    def set_epoch_len(self, epoch_len: int) -> None:
        """Set the length of future windows."""
    def expect_batches(self, samples: int) -> None:
        """Prepare this process for making, or receiving, batches of so many samples over and over again."""
    def samples(self) -> SampleIterator:
        """Begin the next window."""
    def get_item(self, cache_id: int, sample_id: int) -> CachedSample:
        """Read one sample by its identity."""
    def table_version(self) -> int:
        """Give a number that changes with every update of the table."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def update_metadata(self, table: ArrowStream) -> None:
        """Replace the active table."""
    def export_population(
        self, path: str, *, weighted: bool, order_seed: int | None, parts: Sequence[tuple[int, int]]
    ) -> int:
        """Write what other processes need in order to draw from parts of the active table; give its number of rows."""
    def dump_config(self, directory: str, *, num_workers: int | None = None) -> Path:
        """Export table and configuration into a directory; give the path of the configuration."""
    @staticmethod
    def from_config(path: str) -> Dataset:
        """Open what `dump_config` exported."""
    def update_manifests(
        self,
    ) -> tuple[list[tuple[Path, int, Literal["updated", "unchanged", "durability_unknown"]]], tuple[Path, str] | None]:
        """Store the ids of the caches in their manifests; give what became of each, and where and why it stopped."""
    def reader_config(self) -> tuple[int, int, bool, bool]:
        """Give seed, prefetch size, whether it shuffles, and whether caches were validated."""
    def row_count(self) -> int:
        """Give the number of rows of the active table."""
    def table_digest(self) -> str:
        """Give identities and weights of the active table as one word."""
    def close(self) -> None:
        """Let go of files and threads."""

@final
class SampleIterator:
    """The samples of one window. Threads may share it: each sample goes to one of them."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> CachedSample: ...
    def next_batch(self, size: int) -> list[CachedSample]:
        """Give the next samples, `size` of them unless the window ends before; none behind its end.

        If one cannot be read, the whole batch is its error, and the next batch begins behind this one.
        """
