"""`CachedDataset`: documented names over the native dataset, which holds all state."""

from pathlib import Path
from typing import TYPE_CHECKING, Self

from dataset_rt.metadata import ArrowStream, FrameCache, arrow_stream
from dataset_rt.torch import require_torch

if TYPE_CHECKING:
    from types import TracebackType

    import polars as pl

    from dataset_rt._native import Dataset, SampleIterator
    from dataset_rt.config import ReaderConfig
    from dataset_rt.protocols import SizedTorchIterableDataset
    from dataset_rt.records import CachedSample


class CachedDataset:
    """Samples of one or more caches, iterated in table order or by weight.

    `DatasetRuntime.cached_dataset` and `DatasetRuntime.from_cache_sources` make datasets; the class has no constructor
    of its own. A dataset is a context manager; `close` gives back its files and, with the last of its iterators, its
    share of the runtime's threads.
    """

    __slots__ = ("__weakref__", "_frames", "_native", "_reader_config")

    _native: "Dataset"
    _reader_config: "ReaderConfig"
    _frames: FrameCache

    def __init__(self) -> None:
        raise TypeError(
            "a CachedDataset is made by DatasetRuntime.cached_dataset or DatasetRuntime.from_cache_sources, not directly"
        )

    @classmethod
    def _over(cls, native: "Dataset", reader_config: "ReaderConfig") -> Self:
        self = cls.__new__(cls)
        self._native = native
        self._reader_config = reader_config
        self._frames = FrameCache()
        return self

    @property
    def cache_paths(self) -> list[Path]:
        """Directories of the caches, absolute, in physical traversal order."""
        return self._native.paths()

    @property
    def reader_config(self) -> "ReaderConfig":
        """The configuration this dataset was opened with."""
        return self._reader_config

    def __iter__(self) -> "SampleIterator":
        """Begin the next window: take a snapshot of the table now, and advance the cursor by the epoch length."""
        return self._native.samples()

    def __len__(self) -> int:
        """Samples that the next iterator will yield."""
        return len(self._native)

    def get_item(self, cache_id: int, sample_id: int) -> "CachedSample":
        """Read one stored sample, whatever the active table says, without moving any cursor.

        Raises:
            TypeError: An id is no plain int.
            IndexError: No cache of this dataset has the id, or the cache has fewer samples.
        """
        return self._native.get_item(cache_id, sample_id)

    def set_epoch_len(self, epoch_len: int) -> None:
        """Set how many samples each future iterator yields; table and cursor stay as they are."""
        self._native.set_epoch_len(epoch_len)

    def get_metadata(self) -> "pl.DataFrame":
        """Return the active table: `cache_id`, `sample_id`, the stored columns, `weight`, then extra columns.

        The frame shares its buffers with the dataset. Editing it changes nothing here until it is handed to
        `update_metadata`.
        """
        return self._frames.frame(self._native)

    def update_metadata(self, metadata: "pl.DataFrame | ArrowStream") -> None:
        """Replace the active table for future iterators.

        Rows may be missing, repeated and in any order; each is one entry of the sampling population. The epoch length
        becomes the number of rows, and the cursor starts over. A table that is refused changes nothing. Values edited
        in stored columns are kept in the table, but samples always carry what the cache holds.

        Raises:
            TypeError: The argument is no table, or a lazy one.
            ValueError: A required column is missing or of another type, an id is unknown, or a weight is not positive
                and finite.
        """
        self._native.update_metadata(arrow_stream(metadata))
        self._frames.clear()

    def samples_metadata(self) -> "pl.DataFrame":
        """Return what `get_metadata` returns. Older name, kept for existing programs."""
        return self.get_metadata()

    def set_samples_metadata(self, metadata: "pl.DataFrame | ArrowStream") -> None:
        """Do what `update_metadata` does. Older name, kept for existing programs."""
        self.update_metadata(metadata)

    def to_torch_iterable_dataset(self) -> "SizedTorchIterableDataset":
        """Return a view that is a `torch.utils.data.IterableDataset` with a length.

        It yields what iterating the dataset yields, for a `DataLoader` that loads in the main process; loading workers
        are refused.

        Raises:
            ImportError: PyTorch is not installed.
        """
        return require_torch("iterable").TorchIterableDataset(self)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Give back files and memory; iterators that are alive end normally. Closing again does nothing."""
        self._native.close()
        self._frames.clear()

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

    def __repr__(self) -> str:
        if self._native.closed:
            return "CachedDataset(closed)"
        paths = self.cache_paths
        shown = [repr(str(path)) for path in paths[:3]] + ([f"... {len(paths)} in all"] if len(paths) > 3 else [])
        return f"CachedDataset([{', '.join(shown)}], epoch_len={len(self)}, {self._reader_config!r})"
