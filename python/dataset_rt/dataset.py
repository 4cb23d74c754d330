"""`CachedDataset`: documented names over the native dataset, which holds all state."""

from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar, overload

from dataset_rt._native import Dataset
from dataset_rt.config import ReaderConfig
from dataset_rt.metadata import ArrowStream, FrameCache, arrow_stream
from dataset_rt.paths import path_text
from dataset_rt.results import (
    AbsentManifestTarget,
    Err,
    ManifestUpdateEntry,
    ManifestUpdateError,
    ManifestUpdateReport,
    Ok,
    Result,
)
from dataset_rt.torch import require_torch

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.context import BaseContext
    from types import TracebackType
    from typing import Any, Literal, NoReturn

    import polars as pl
    from torch.utils.data import DataLoader

    from dataset_rt._native import SampleIterator
    from dataset_rt.protocols import SizedTorchIterableDataset
    from dataset_rt.records import CachedSample

T = TypeVar("T")
BatchT = TypeVar("BatchT")


class CachedDataset:
    """Samples of one or more caches, iterated in table order or by weight.

    `DatasetRuntime.cached_dataset`, `DatasetRuntime.from_cache_sources` and `CachedDataset.from_config` make datasets; the
    class cannot be called. A dataset is a context manager; `close` gives back its files and, with the last of its iterators, its
    share of the runtime's threads.
    """

    __slots__ = ("__weakref__", "_frames", "_native", "_reader_config")

    _native: Dataset
    _reader_config: ReaderConfig
    _frames: FrameCache

    def __init__(self) -> None:
        raise TypeError(
            "a CachedDataset is made by DatasetRuntime.cached_dataset, DatasetRuntime.from_cache_sources or "
            "CachedDataset.from_config, not directly"
        )

    @classmethod
    def _over(cls, native: Dataset, reader_config: ReaderConfig) -> Self:
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
    def reader_config(self) -> ReaderConfig:
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

        Raises:
            ValueError: Stored metadata is damaged, or a stored column has a name that no table can have: one of its own
                three, which only other writers allow, or one with a NUL.
        """
        return self._frames.frame(self._native)

    def update_metadata(self, metadata: "pl.DataFrame | ArrowStream") -> None:
        """Replace the active table for future iterators.

        Rows may be missing, repeated and in any order; each is one entry of the sampling population. The epoch length
        becomes the number of rows, and the cursor starts over. A table that is refused changes nothing. Values edited
        in stored columns are kept in the table, but samples always carry what the cache holds. Ids and weights are
        copied; other columns may share the memory of arrays that the table was made of, which should then stay as they are.

        Raises:
            TypeError: The argument is no table, or a lazy one.
            ValueError: A required column is missing or of another type, an id is unknown, or a weight is not positive
                and finite.
        """
        # First of all: in a forked child not even the frame may be looked at, its library may have been at work.
        self._native.check_open()
        self._native.update_metadata(arrow_stream(metadata))
        self._frames.clear()

    def samples_metadata(self) -> "pl.DataFrame":
        """Return what `get_metadata` returns. Older name, kept for existing programs."""
        return self.get_metadata()

    def set_samples_metadata(self, metadata: "pl.DataFrame | ArrowStream") -> None:
        """Do what `update_metadata` does. Older name, kept for existing programs."""
        self.update_metadata(metadata)

    def dump_config(self, path: str | Path) -> Path:
        """Export this dataset into the existing directory `path` and return the file that `from_config` opens.

        Two files are written: the active table as `metadata.arrow`, and `dataset.json`, which tells where the caches are
        and how they are read. Rows with their order, repetitions, weights and extra columns are kept exactly, and so is
        the epoch length; how far iterators have come is not. Nothing that exists is overwritten.

        Raises:
            FileExistsError: The directory has an export.
            OSError: There is no such directory, or nothing can be written there.
            ValueError: The path of a cache is no valid Unicode.
        """
        return self._native.dump_config(path_text(path, "path"))

    @classmethod
    def from_config(cls, path: str | Path) -> Self:
        """Open the dataset that `dump_config` exported to the file `path`, with native threads of its own.

        It begins as the exported dataset began after its last update: at the start of its samples. The table stays in
        the exported file, which must not change while the dataset lives.

        Raises:
            FileNotFoundError: The file, the table beside it or caches are not there; the message names every such cache.
            OSError: The file is a directory, or something cannot be read.
            ValueError: The export is damaged, of another version, or not of the caches that are there now.
        """
        native = Dataset.from_config(path_text(path, "path"))
        seed, prefetch_size, shuffle, validate_cache = native.reader_config()
        config = ReaderConfig(seed=seed, prefetch_size=prefetch_size, shuffle=shuffle, validate_cache=validate_cache)
        return cls._over(native, config)

    def update_manifests(self, version: "Literal[3]") -> Result[ManifestUpdateReport, ManifestUpdateError]:
        """Store the ids that the caches have in this dataset in their manifests, which become version 3.

        A cache of version 2 has the position of its path for an id. Open such caches in the order in which their ids
        are used elsewhere, for example in saved tables; after the update they keep these ids in any order. Manifests of
        version 3 stay as they are, and so does everything else: samples, table, cursors.

        All manifests are checked and their replacements written before the first is replaced. Each is replaced at once:
        other readers see the old or the new one. Nobody else may change them meanwhile. Repeating a call that stopped,
        with the same paths in the same order, completes it.

        Returns:
            `Ok` with one entry for each cache, or `Err` with the manifest that could not be replaced, the reason, and the
            entries of those that were. Any other `version` than 3 is an `Err` without a path.
        """
        if type(version) is not int or version != 3:
            reason = f"version must be 3, found {version!r}"
            return Err(ManifestUpdateError(AbsentManifestTarget(reason), reason, ()))
        outcomes, stopped = self._native.update_manifests()
        entries = tuple(ManifestUpdateEntry(*outcome) for outcome in outcomes)
        if stopped is None:
            return Ok(ManifestUpdateReport(entries))
        path, message = stopped
        return Err(ManifestUpdateError(path, message, entries))

    def to_torch_iterable_dataset(self) -> "SizedTorchIterableDataset":
        """Return a view that is a `torch.utils.data.IterableDataset` with a length.

        It yields what iterating the dataset yields, for a `DataLoader` that loads in the main process; loading workers
        are refused, `to_torch_dataloader` is for them.

        Raises:
            ImportError: PyTorch is not installed.
        """
        return require_torch("iterable").TorchIterableDataset(self)  # type: ignore[no-any-return]

    @overload
    def to_torch_dataloader(
        self,
        *,
        batch_size: int = 1,
        sample_transform_fn: "Callable[[CachedSample], T]",
        collate_fn: "Callable[[list[T]], BatchT]",
        shuffle: bool = True,
        seed: "int | Literal['random']" = "random",
        samples_per_epoch: int | None = None,
        worker_partition: "Literal['split', 'replicate'] | None" = None,
        work_dir: "str | Path | None" = None,
        num_workers: "int | Literal['auto']" = "auto",
        drop_last: bool = False,
        pin_memory: bool = False,
        timeout: float = 0,
        native_num_workers: "int | Literal['auto']" = "auto",
        multiprocessing_context: "Literal['inherit', 'fork', 'spawn', 'forkserver'] | BaseContext" = "spawn",
        worker_init_fn: "Callable[[int], None] | None" = None,
        prefetch_factor: "int | Literal['auto']" = "auto",
        persistent_workers: "bool | Literal['auto']" = "auto",
        verbose: bool = True,
    ) -> "DataLoader[CachedSample | T]": ...

    @overload
    def to_torch_dataloader(
        self,
        *,
        batch_size: int = 1,
        sample_transform_fn: None = None,
        collate_fn: "Callable[[list[CachedSample]], BatchT]",
        shuffle: bool = True,
        seed: "int | Literal['random']" = "random",
        samples_per_epoch: int | None = None,
        worker_partition: "Literal['split', 'replicate'] | None" = None,
        work_dir: "str | Path | None" = None,
        num_workers: "int | Literal['auto']" = "auto",
        drop_last: bool = False,
        pin_memory: bool = False,
        timeout: float = 0,
        native_num_workers: "int | Literal['auto']" = "auto",
        multiprocessing_context: "Literal['inherit', 'fork', 'spawn', 'forkserver'] | BaseContext" = "spawn",
        worker_init_fn: "Callable[[int], None] | None" = None,
        prefetch_factor: "int | Literal['auto']" = "auto",
        persistent_workers: "bool | Literal['auto']" = "auto",
        verbose: bool = True,
    ) -> "DataLoader[CachedSample | T]": ...

    @overload
    def to_torch_dataloader(
        self,
        *,
        batch_size: int = 1,
        sample_transform_fn: "Callable[[CachedSample], T] | None" = None,
        collate_fn: None = None,
        shuffle: bool = True,
        seed: "int | Literal['random']" = "random",
        samples_per_epoch: int | None = None,
        worker_partition: "Literal['split', 'replicate'] | None" = None,
        work_dir: "str | Path | None" = None,
        num_workers: "int | Literal['auto']" = "auto",
        drop_last: bool = False,
        pin_memory: bool = False,
        timeout: float = 0,
        native_num_workers: "int | Literal['auto']" = "auto",
        multiprocessing_context: "Literal['inherit', 'fork', 'spawn', 'forkserver'] | BaseContext" = "spawn",
        worker_init_fn: "Callable[[int], None] | None" = None,
        prefetch_factor: "int | Literal['auto']" = "auto",
        persistent_workers: "bool | Literal['auto']" = "auto",
        verbose: bool = True,
    ) -> "DataLoader[CachedSample | T]": ...

    def to_torch_dataloader(
        self,
        *,
        shuffle: bool = True,
        seed: "int | Literal['random']" = "random",
        samples_per_epoch: int | None = None,
        worker_partition: "Literal['split', 'replicate'] | None" = None,
        work_dir: "str | Path | None" = None,
        batch_size: int = 1,
        num_workers: "int | Literal['auto']" = "auto",
        sample_transform_fn: "Callable[[CachedSample], T] | None" = None,
        collate_fn: "Callable[[list[Any]], BatchT] | None" = None,
        drop_last: bool = False,
        pin_memory: bool = False,
        timeout: float = 0,
        native_num_workers: "int | Literal['auto']" = "auto",
        multiprocessing_context: "Literal['inherit', 'fork', 'spawn', 'forkserver'] | BaseContext" = "spawn",
        worker_init_fn: "Callable[[int], None] | None" = None,
        prefetch_factor: "int | Literal['auto']" = "auto",
        persistent_workers: "bool | Literal['auto']" = "auto",
        verbose: bool = True,
    ) -> "DataLoader[CachedSample | T]":
        """Build a finite `DataLoader`, for one process or for all ranks of an initialised process group together.

        The active table is exported when the loader is constructed; later changes do not reach it. A pass takes
        `samples_per_epoch` samples over all ranks and loading workers, each of them a consumer with a seed and a stream
        of its own, and the next pass goes on where it ended. How samples are divided, what is padded or left out, and
        what is logged is told in the guide on PyTorch.

        Args:
            shuffle: Draw by weight with replacement; otherwise read in the order of the table.
            seed: Number that all draws follow from; `'random'` picks one, which is logged. Only with `shuffle`.
            samples_per_epoch: Samples of one pass over all ranks; `None` takes `len(self)`.
            worker_partition: Whether consumers share the rows (`'split'`) or each have all (`'replicate'`). `None`
                replicates when shuffling and splits otherwise.
            work_dir: Existing directory in which the loader keeps what it exports. `None` takes a temporary one, which
                goes with the loader.
            batch_size: Samples of a batch.
            num_workers: Loading processes, up to 1024; 0 loads in this process. `'auto'` takes up to 4, one less than there
                are CPUs.
            sample_transform_fn: Applied to each sample where it is loaded. Must be picklable for loading workers.
            collate_fn: Makes a batch of a list of samples, transformed if there is a transform.
            drop_last: Whether to leave out what makes no whole batch on every rank.
            pin_memory: As in `DataLoader`.
            timeout: Seconds to wait for a batch from workers, 0 for ever.
            native_num_workers: Native threads of each consumer. `'auto'` shares the CPUs, up to 4 each.
            multiprocessing_context: How workers start; `'inherit'` leaves it to Python.
            worker_init_fn: Called in each worker with its number, after native set-up.
            prefetch_factor: Batches that each worker prepares ahead, up to 65536; `'auto'` is 2.
            persistent_workers: Whether workers outlive a pass. Those that do not begin anew each time and repeat the same
                samples. `'auto'` keeps them.
            verbose: Whether to log seeds, numbers of processes and threads, and passes.

        Raises:
            ImportError: PyTorch is not installed.
            TypeError: An argument has another type than documented.
            ValueError: An argument is not possible, or ranks do not agree on the loader.
            OSError: `work_dir` is no directory, or nothing can be written there.
            RuntimeError: A rank did not construct its loader in time.
        """
        loader: DataLoader[Any] = require_torch("loader").build(
            self,
            batch_size=batch_size,
            sample_transform_fn=sample_transform_fn,
            collate_fn=collate_fn,
            shuffle=shuffle,
            seed=seed,
            samples_per_epoch=samples_per_epoch,
            worker_partition=worker_partition,
            work_dir=work_dir,
            num_workers=num_workers,
            drop_last=drop_last,
            pin_memory=pin_memory,
            timeout=timeout,
            native_num_workers=native_num_workers,
            multiprocessing_context=multiprocessing_context,
            worker_init_fn=worker_init_fn,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            verbose=verbose,
        )
        return loader

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

    def __reduce__(self) -> "NoReturn":
        raise TypeError(
            "a CachedDataset cannot be pickled or copied: its files and threads belong to this process; open its cache_paths "
            "where they are needed, or let to_torch_dataloader do that in loading workers"
        )

    def __repr__(self) -> str:
        if self._native.closed:
            return "CachedDataset(closed)"
        paths = self.cache_paths
        shown = [repr(str(path)) for path in paths[:3]] + ([f"... {len(paths)} in all"] if len(paths) > 3 else [])
        try:
            epoch_len = f"epoch_len={len(self)}"
        except RuntimeError:
            epoch_len = "of a parent process"
        return f"CachedDataset([{', '.join(shown)}], {epoch_len}, {self._reader_config!r})"
