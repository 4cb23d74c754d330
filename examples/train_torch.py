"""Train a small classifier on the handwritten digits of scikit-learn, out of a cache, and test it.

Run it by hand: `python examples/train_torch.py [--epochs N] [--workers N]`. It needs PyTorch and scikit-learn.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader

import dataset_rt as drt


class Digits:
    """One split of the digits: 8 x 8 pixels of one byte each, with the label beside them."""

    def __init__(self, split: str) -> None:
        self.name = f"digits-{split}"
        self.split = split

    def __iter__(self) -> Iterator[drt.CacheInput]:
        digits: Any = load_digits()
        for number, (pixels, label) in enumerate(zip(digits.images, digits.target, strict=True)):
            if ("test" if number % 7 == 0 else "train") == self.split:
                yield drt.CacheInput(pixels.astype("uint8").tobytes(), {"label": int(label)})


def open_split(runtime: drt.DatasetRuntime, split: str, base: Path, *, shuffle: bool) -> drt.CachedDataset:
    """Open the cache of a split below `base`, written by whoever comes first."""
    opened = runtime.from_cache_sources(
        [Digits(split)],
        base,
        reader_config=drt.ReaderConfig(seed=0, shuffle=shuffle),
        writer_config=drt.WriterConfig(show_progress=False),
    )
    match opened:
        case drt.CacheSourcesDatasetSuccess(dataset, _):
            return dataset
        case drt.CacheSourcesDatasetError(_, message):
            raise SystemExit(message)


# Loading workers import what they call: a function at the top level of a module, no lambda.
def decode(sample: drt.CachedSample) -> tuple[Tensor, int]:
    """From bytes to what the classifier takes: 64 numbers from 0 to 1, and the label."""
    pixels = torch.frombuffer(bytearray(sample.data), dtype=torch.uint8)
    return pixels.float() / 16, int(sample.metadata["label"])


def classifier() -> nn.Module:
    """Two layers, which do for pictures of this size."""
    return nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))


def train_epoch(model: nn.Module, optimizer: torch.optim.Optimizer, loader: DataLoader[Any]) -> int:
    """Take one step for each batch of one pass, and return how many there were."""
    steps = 0
    for pixels, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pixels), labels).backward()
        optimizer.step()
        steps += 1
    return steps


def main() -> None:
    """Parse the command line, train, test."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--workers", type=int, default=1, help="loading workers; 0 loads in this process")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dataset_rt_") as base:
        run(Path(base), arguments.epochs, arguments.workers)


def run(base: Path, epochs: int, workers: int) -> None:
    """Write both splits, train on one and test on the other."""
    torch.manual_seed(0)
    # So small a model has no use for more threads.
    torch.set_num_threads(1)
    runtime = drt.DatasetRuntime(num_workers=1)
    training = open_split(runtime, "train", base, shuffle=True).to_torch_dataloader(
        batch_size=32, sample_transform_fn=decode, seed=7, num_workers=workers, verbose=False
    )
    # In order, and each sample once: what a test needs. So few are read at once in this process.
    testing = open_split(runtime, "test", base, shuffle=False).to_torch_dataloader(
        batch_size=64, sample_transform_fn=decode, shuffle=False, num_workers=0, verbose=False
    )

    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    started = time.perf_counter()
    steps = sum(train_epoch(model, optimizer, training) for _ in range(epochs))
    print(f"{epochs} epochs of {len(training)} batches, {steps} steps in {time.perf_counter() - started:.1f} s")

    right = tested = 0
    with torch.no_grad():
        for pixels, labels in testing:
            right += int((model(pixels).argmax(dim=1) == labels).sum())
            tested += len(labels)
    print(f"test accuracy: {right / tested:.1%} of {tested} samples")


if __name__ == "__main__":
    main()
