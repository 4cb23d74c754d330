"""What a program sees of the types of loaders: every overload. Checked, never run."""

from typing import assert_type

from torch import Tensor
from torch.utils.data import DataLoader

import dataset_rt as drt


def decode(sample: drt.CachedSample) -> Tensor:
    raise NotImplementedError


def stack(samples: list[Tensor]) -> tuple[Tensor, int]:
    raise NotImplementedError


def stack_samples(samples: list[drt.CachedSample]) -> tuple[Tensor, int]:
    raise NotImplementedError


def loaders(dataset: drt.CachedDataset) -> None:
    both = dataset.to_torch_dataloader(sample_transform_fn=decode, collate_fn=stack, batch_size=4)
    assert_type(both, DataLoader[drt.CachedSample | Tensor])
    transformed = dataset.to_torch_dataloader(sample_transform_fn=decode, num_workers=2, seed=1)
    assert_type(transformed, DataLoader[drt.CachedSample | Tensor])
    collated: DataLoader[drt.CachedSample | Tensor] = dataset.to_torch_dataloader(collate_fn=stack_samples)
    assert_type(collated, DataLoader[drt.CachedSample | Tensor])
    plain: DataLoader[drt.CachedSample | Tensor] = dataset.to_torch_dataloader(
        shuffle=False, multiprocessing_context="fork"
    )
    assert_type(plain, DataLoader[drt.CachedSample | Tensor])
    assert_type(len(plain), int)
    assert_type(dataset.to_torch_iterable_dataset(), drt.SizedTorchIterableDataset)
    loader: DataLoader[drt.CachedSample] = DataLoader(dataset.to_torch_iterable_dataset())
    assert_type(loader, DataLoader[drt.CachedSample])


def mistakes(dataset: drt.CachedDataset) -> None:
    dataset.to_torch_dataloader(sample_transform_fn=decode, collate_fn=stack_samples)  # type: ignore[misc]
    dataset.to_torch_dataloader(collate_fn=stack_samples, worker_partition="both")  # type: ignore[call-overload]
    dataset.to_torch_dataloader(4)  # type: ignore[call-overload]
