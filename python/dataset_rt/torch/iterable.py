"""A dataset as a `torch.utils.data.IterableDataset` with a length. Imports torch: load it only when asked for."""

from typing import TYPE_CHECKING, NoReturn

from torch.utils.data import IterableDataset, get_worker_info

from dataset_rt.protocols import SizedTorchIterableDataset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataset_rt.dataset import CachedDataset
    from dataset_rt.records import CachedSample


class TorchIterableDataset(SizedTorchIterableDataset, IterableDataset["CachedSample"]):
    """The samples of one dataset, in the main process only.

    Loading workers would each yield all samples, so they are refused. A copy made by pickle knows how long the
    dataset was, and yields nothing.
    """

    def __init__(self, dataset: "CachedDataset") -> None:
        self._dataset: CachedDataset | None = dataset
        self._length = 0

    def __iter__(self) -> "Iterator[CachedSample]":
        if get_worker_info() is not None:
            _refuse("it was handed to a loading worker")
        if self._dataset is None:
            _refuse("this is a copy made by pickle")
        return iter(self._dataset)

    def __getitem__(self, index: object) -> NoReturn:
        no_item("what to_torch_iterable_dataset() returns")

    def __len__(self) -> int:
        return self._length if self._dataset is None else len(self._dataset)

    def __getstate__(self) -> int:
        return len(self)

    def __setstate__(self, length: int) -> None:
        self._dataset = None
        self._length = length

    def __repr__(self) -> str:
        return (
            f"TorchIterableDataset({self._dataset if self._dataset is not None else f'copy of {self._length} samples'})"
        )


def _refuse(reason: str) -> NoReturn:
    raise RuntimeError(
        f"to_torch_iterable_dataset() can only be iterated where it was made, with DataLoader(num_workers=0), but {reason}; "
        "for loading workers call CachedDataset.to_torch_dataloader(num_workers=...), or read in parallel with "
        "DatasetRuntime(num_workers=...)"
    )


def no_item(dataset: str) -> NoReturn:
    """Refuse an index, as `torch.utils.data.Subset` and `random_split` give."""
    raise TypeError(
        f"{dataset} is read in sequence and has no sample with an index; look one up with CachedDataset.get_item(...), or "
        "take a part of the rows with CachedDataset.update_metadata(...) before you make a loader"
    )
