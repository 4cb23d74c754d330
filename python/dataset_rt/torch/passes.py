"""The loader that torch sees, and its passes: windows that follow each other, whatever becomes of the workers."""

import copy
import os
import signal
import weakref
from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader

from dataset_rt.torch.worker import Batches, LoaderDataset

# Iterators of a parent, held for ever: one that goes would end the workers, which are the parent's.
_of_parents: list[Any] = []


class CachedDataLoader(DataLoader[Any]):
    """A `DataLoader` over one rank's share.

    Its dataset makes whole batches, which torch need not gather sample by sample. Torch lets all passes of persistent
    workers share one iterator. Here each pass has its own, so that one that is still being read is not cut short by the
    next. A copy (by `pickle`, `copy` or a fork) goes on where this loader was when it was made, with workers of its own.
    """

    # Torch declares a variable; nobody gives it another value.
    dataset: LoaderDataset  # pyright: ignore[reportIncompatibleVariableOverride]
    _iterator: Any

    def __init__(self, dataset: LoaderDataset, **given: Any) -> None:
        super().__init__(dataset, **given)
        self._newest: weakref.ref[Pass] | None = None
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        # With a dataset of its own: the passes of a copy are not those of the original.
        return self.__dict__ | {"dataset": copy.copy(self.dataset), "_iterator": None, "_newest": None}

    @property
    def _auto_collation(self) -> bool:
        # Torch gathers batches of `batch_size` unless this says that the dataset does.
        return False

    def _get_iterator(self) -> Any:
        reading = copy.copy(self)
        reading.__dict__["dataset"] = Batches(self.dataset)
        return super(CachedDataLoader, reading)._get_iterator()

    def _check_division(self) -> None:
        """Refuse other numbers than those by which rows are divided: the samples of some workers would be missing."""
        plan = self.dataset.plan
        for name, divided in [
            ("num_workers", self.dataset.num_workers),
            ("batch_size", plan.declared_batch_size),
            ("drop_last", plan.drop_last),
            ("persistent_workers", self.dataset.persistent),
        ]:
            found = getattr(self, name)
            if found != divided:
                raise RuntimeError(
                    f"{name} of this loader must stay {divided}, found {found}: rows are divided among workers and batches already; "
                    "construct another loader with to_torch_dataloader(...)"
                )

    def __iter__(self) -> Any:
        self._check_division()
        if self.num_workers == 0 and not self.pin_memory:
            # All that torch would do, without what it does around each batch, which costs as much as reading it.
            return Pass(map(self.collate_fn, self.dataset.begin_pass()), self)
        if not self.persistent_workers:
            return Pass(super().__iter__(), self)
        with self.dataset.lock():
            self._keep_or_leave_workers()
            begun = Pass(self._begin_with_workers(), self)
            self.dataset.begun += 1
            self._newest = weakref.ref(begun)
            return begun

    def _begin_with_workers(self) -> Any:
        try:
            return super().__iter__()
        except BaseException as error:
            lost = lost_workers(self._iterator, self)
            # Some workers may have begun the pass.
            self._iterator = None
            if not (lost and isinstance(error, RuntimeError)):
                raise
        return super().__iter__()

    def _keep_or_leave_workers(self) -> None:
        """Forget workers that cannot make the next pass; those that torch then starts begin where the last pass ends."""
        if self._process != os.getpid():
            _of_parents.append(self._iterator)
            self._iterator, self._newest, self._process = None, None, os.getpid()
        newest = None if self._newest is None else self._newest()
        # Whoever still reads a pass keeps its workers.
        being_read = newest is not None and not newest.end_if_complete()
        if being_read or lost_workers(self._iterator, self):
            self._iterator = None


class Pass:
    """One pass over the batches of a loader, which lives as long as the pass."""

    def __init__(self, batches: Iterator[Any], loader: CachedDataLoader) -> None:
        self._batches = batches
        self._loader = loader
        self._left = loader.dataset.plan.batches
        self._lost = ""
        self._is_over = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._is_over:
            raise RuntimeError(self._lost) if self._lost else StopIteration
        try:
            batch = next(self._batches)
        except StopIteration:
            self._end()
            raise
        except RuntimeError as error:
            self._lost = lost_workers(self._batches, self._loader)
            if not self._lost:
                raise
            # Torch would go on without the batches of these workers.
            self._end()
            raise RuntimeError(self._lost) from error
        self._left -= 1
        return batch

    def __len__(self) -> int:
        """Batches of the whole pass."""
        return len(self._loader)

    def end_if_complete(self) -> bool:
        """End this pass if it has given all its batches, whether or not anybody asked for one more; say if it is over."""
        if self._left == 0:
            self._end()
        return self._is_over

    def _end(self) -> None:
        self._is_over = True
        self._batches = iter(())


def lost_workers(batches: Any, loader: CachedDataLoader) -> str:
    """What became of workers that should still be there; empty if nothing did."""
    # Workers that serve one pass end with it.
    regular = (None,) if loader.persistent_workers else (None, 0)
    ends = [worker for worker in getattr(batches, "_workers", ()) if worker.exitcode not in regular]
    if not ends:
        return ""
    told = ", ".join(f"loading worker {worker.pid} {_end(worker.exitcode)}" for worker in ends)
    advice = " and ".join(dict.fromkeys(_advice(worker.exitcode) for worker in ends))
    return f"{told}; the rest of this pass is lost, and the next pass starts new workers behind it; {advice}"


def _advice(exit_code: int) -> str:
    if exit_code == -signal.SIGKILL:
        return "it may have run out of memory: use fewer workers, smaller batches or a smaller prefetch_factor"
    if exit_code < 0:
        return "native code that a callback uses may have crashed: try num_workers=0 and `python -X faulthandler`"
    return (
        'what it printed is on stderr: often that the main program has no `if __name__ == "__main__":`, or that a function '
        "cannot be imported, as those of a notebook or of `python -c` cannot"
    )


def _end(exit_code: int) -> str:
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        return f"was killed by signal {-exit_code} ({signal.Signals(-exit_code).name})"
    except ValueError:
        return f"was killed by signal {-exit_code}"
