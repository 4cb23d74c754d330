"""The consuming side of a loader: in each loading worker, or in the main process if there are none."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from torch.utils.data import IterableDataset, get_worker_info

from dataset_rt._native import Runtime
from dataset_rt.config import ReaderConfig
from dataset_rt.torch.artifacts import POPULATION_FILE, ExportedConfig
from dataset_rt.torch.diagnostics import log_event
from dataset_rt.torch.iterable import no_item

if TYPE_CHECKING:
    from dataset_rt._native import Dataset, SampleIterator
    from dataset_rt.torch.artifacts import Kept
    from dataset_rt.torch.plan import Consumer, Plan


class LoaderDataset(IterableDataset[Any]):
    """The samples of one rank. Only its own loader can read them, which knows how they are divided among workers.

    This object is what travels to the workers: a path and a few numbers. Native state is made where it is used.
    """

    def __init__(
        self,
        config: Path,
        plan: "Plan",
        rank: int,
        num_workers: int,
        native_threads: int,
        sample_transform_fn: Callable[[Any], Any] | None,
        kept: "Kept",
        *,
        persistent: bool,
        verbose: bool,
    ) -> None:
        self.config = config
        self.plan = plan
        self.rank = rank
        self.num_workers = num_workers
        self.native_threads = native_threads
        self.sample_transform_fn = sample_transform_fn
        self.persistent = persistent
        self.verbose = verbose
        self.begun: int = 0
        """Passes that were begun: a new reader goes on behind them."""
        self._kept = kept
        self._reader: _Reader | None = None
        self._locks: dict[int, threading.Lock] = {}

    def __len__(self) -> int:
        """Samples of one pass, which torch divides by the batch size."""
        return self.plan.budget

    def __iter__(self) -> NoReturn:
        raise RuntimeError(
            "the dataset of a loader can only be read by that loader, because batches and shares of workers are made already; "
            "iterate the loader itself, or pass what you need to to_torch_dataloader(...) instead of wrapping its dataset"
        )

    def __getitem__(self, index: object) -> NoReturn:
        no_item("the dataset of a loader")

    def begin_pass(self) -> Iterator[list[Any]]:
        """Take the next window of this process, and make a list of every batch of it in one call."""
        with self.lock():
            batches = self._reader_here().begin_pass(self)
            self.begun += 1
            return batches

    def set_up(self) -> None:
        """Make what this process needs for reading, before the first pass asks for it."""
        with self.lock():
            self._reader_here()

    def lock(self) -> threading.Lock:
        """Return the lock of this process: one that a thread holds during a fork stays locked in the child."""
        return self._locks.setdefault(os.getpid(), threading.Lock())

    def _reader_here(self) -> "_Reader":
        if self._reader is None or self._reader.pid != os.getpid():
            info = get_worker_info()
            self._reader = _Reader(self, 0 if info is None else info.id)
        return self._reader

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_reader": None, "_locks": {}}

    def __repr__(self) -> str:
        return (
            f"LoaderDataset({self.plan}, rank={self.rank}, num_workers={self.num_workers}, config={str(self.config)!r})"
        )


class Batches(IterableDataset[Any]):
    """What torch iterates: the batches of one rank as lists, of which every loading worker makes its own."""

    def __init__(self, dataset: LoaderDataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __iter__(self) -> Iterator[list[Any]]:
        try:
            return self.dataset.begin_pass()
        except Exception as error:
            if get_worker_info() is None:
                raise
            # Torch expects a worker that begins another pass not to fail before its first batch.
            return _Failing(error)


class Callback:
    """A function of the user. If it raises `StopIteration`, that must not look like the end of a pass."""

    def __init__(self, name: str, function: Callable[[Any], Any]) -> None:
        self.name = name
        self.function = function

    def __call__(self, argument: Any) -> Any:
        """Call the function."""
        try:
            return self.function(argument)
        except StopIteration as error:
            raise self.ended() from error

    def ended(self) -> RuntimeError:
        """What is raised instead."""
        return RuntimeError(f"{self.name} raised StopIteration; give next() a default, or catch it there")


class _Lists(Iterator[list[Any]]):
    """The batches of one pass. It keeps the samples while any thread is asking for more of them."""

    def __init__(self, samples: "SampleIterator", size: int, transform: Callable[[Any], Any] | None) -> None:
        self._samples = samples
        self._size = size
        self._transform = None if transform is None else Callback("sample_transform_fn", transform)

    def __next__(self) -> list[Any]:
        batch = self._samples.next_batch(self._size)
        if not batch:
            raise StopIteration
        if self._transform is None:
            return batch
        transform = self._transform.function
        try:
            return [transform(sample) for sample in batch]
        except StopIteration as error:
            raise self._transform.ended() from error


class WorkerInit:
    """What a loading worker does first: native set-up, then what the user wants."""

    def __init__(self, worker_init_fn: Callable[[int], None] | None) -> None:
        self.worker_init_fn = worker_init_fn

    def __call__(self, worker_id: int) -> None:
        """Set up worker `worker_id`."""
        _end_with_parent()
        info = get_worker_info()
        if info is not None and isinstance(info.dataset, Batches):
            info.dataset.dataset.set_up()
        if self.worker_init_fn is not None:
            Callback("worker_init_fn", self.worker_init_fn)(worker_id)


def _end_with_parent() -> None:
    """End this process when the one that wants its batches is gone.

    Torch looks for it between batches only, of which one may take for ever. And it looks for the process that forked this
    one, which under `forkserver` is another and lives as long as its children.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="parent-watch", daemon=True).start()


class _Reader:
    """Native state of one consumer: its rows, and how far it has come."""

    def __init__(self, loader: LoaderDataset, worker: int) -> None:
        self.pid: int = os.getpid()
        self._consumer = loader.plan.consumer(loader.rank, worker, max(1, loader.num_workers))
        self._native: Dataset | None = None
        if self._consumer.quota == 0:
            self._log(loader, "reader_empty")
            return
        self._native = _open(loader, self._consumer)
        self._log(loader, "reader_started")

    def begin_pass(self, loader: LoaderDataset) -> Iterator[list[Any]]:
        """Take the next window, and make a list of every batch of it in one call."""
        if self._native is None:
            return iter(())
        samples = self._native.samples()
        self._log(loader, "reader_pass")
        return _Lists(samples, self._consumer.batch_size, loader.sample_transform_fn)

    # The loader keeps this object, which must not keep the loader: its files go with the last reference to it.
    def _log(self, loader: LoaderDataset, event: str) -> None:
        consumer = self._consumer
        if not loader.verbose:
            return
        log_event(
            event,
            pid=self.pid,
            rank=consumer.rank,
            worker=consumer.worker,
            seed=consumer.seed,
            native_threads=loader.native_threads,
            persistent=loader.persistent,
            samples=consumer.quota,
            population=len(consumer.population),
            sampling_reset=loader.num_workers > 0 and not loader.persistent,
        )


def _open(loader: LoaderDataset, consumer: "Consumer") -> "Dataset":
    """Map the rows of one consumer, its stream being where it should begin."""
    config = ExportedConfig.load(loader.config)
    native = Runtime(loader.native_threads).open_population(
        config.cache_paths,
        ReaderConfig(seed=consumer.seed or 0, shuffle=consumer.seed is not None, prefetch_size=config.prefetch_size),
        str(loader.config.parent / POPULATION_FILE),
        consumer.population.start,
        consumer.population.stop,
    )
    passed = consumer.window(loader.begun)
    if passed:
        # A window is used up by the iterator that takes it, even if nobody reads from it.
        native.set_epoch_len(passed)
        native.samples()
    native.set_epoch_len(consumer.quota)
    native.expect_batches(min(consumer.batch_size, consumer.quota))
    return native


class _Failing(Iterator[Any]):
    """Fails when it is asked for the first sample."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __next__(self) -> Any:
        raise self._error
