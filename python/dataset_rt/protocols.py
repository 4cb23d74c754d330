"""What the library asks of objects that it does not make itself, and promises of those it makes on demand."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from dataset_rt.records import CachedSample, CacheInput

if TYPE_CHECKING:
    from torch.utils.data import IterableDataset

    # What is returned is one of torch's; the class exists without torch all the same.
    class _OfTorch(IterableDataset[CachedSample], ABC): ...
else:
    _OfTorch = ABC


@runtime_checkable
class CacheSource(Protocol):
    """Something with a `name` that yields the samples of one cache.

    `name` becomes the directory of the cache. Iteration happens in the calling thread, or in a spawned process if the
    configuration asks for processes, and never runs far ahead of what is being written.
    """

    name: str

    def __iter__(self) -> Iterator[CacheInput]:
        """Start at the first sample."""
        ...


class SizedTorchIterableDataset(_OfTorch):
    """The samples of a dataset as a `torch.utils.data.IterableDataset` with a length.

    `CachedDataset.to_torch_iterable_dataset` returns one.
    """

    @abstractmethod
    def __iter__(self) -> Iterator[CachedSample]:
        """Begin the next epoch."""

    @abstractmethod
    def __len__(self) -> int:
        """Samples in one epoch."""
