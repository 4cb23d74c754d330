"""Draw what a model gets wrong more often: weights from losses between epochs, on the digits of scikit-learn.

Run it by hand: `python examples/hard_examples.py [--epochs N]`. It needs scikit-learn and Pillow, and no PyTorch: the model is
ten rows of numbers.
"""

import argparse
import tempfile
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
from quickstart import Digits

import dataset_rt as drt

Numbers: TypeAlias = npt.NDArray[np.float64]
BATCH = 32
STEP = 0.05


class Classifier:
    """Softmax regression: one score for each digit, linear in the pixels."""

    def __init__(self) -> None:
        self.weights: Numbers = np.zeros((10, 65))

    def shares(self, pixels: Numbers) -> Numbers:
        """What it takes the probabilities of the ten digits for, one row for each picture."""
        scores = pixels @ self.weights.T
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: Numbers = exponentials / exponentials.sum(axis=1, keepdims=True)
        return shares

    def losses(self, pixels: Numbers, labels: npt.NDArray[np.int64]) -> Numbers:
        """Cross entropy of each picture."""
        return -np.log(self.shares(pixels)[np.arange(len(labels)), labels] + 1e-12)

    def learn(self, pixels: Numbers, labels: npt.NDArray[np.int64]) -> None:
        """Take one step down the mean loss of a batch."""
        error = self.shares(pixels) - np.eye(10)[labels]
        self.weights -= STEP * error.T @ pixels / len(labels)


def main() -> None:
    """Train twice with equally many draws, and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=20)
    arguments = parser.parse_args()
    runtime = drt.DatasetRuntime(num_workers=2)
    with tempfile.TemporaryDirectory(prefix="dataset_rt_") as base:
        paths = write(runtime, Path(base))
        for title, mining in (("every sample alike", False), ("hard ones more often", True)):
            model, dataset = train(runtime, paths[0], arguments.epochs, mining=mining)
            losses = np.sort(model.losses(*arrays(in_order(runtime, paths[0]))))
            worst = losses[-len(losses) // 20 :].mean()
            pixels, labels = arrays(in_order(runtime, paths[1]))
            wrong = int((model.shares(pixels).argmax(axis=1) != labels).sum())
            print(f"{title}: mean loss of the worst twentieth {worst:.3f}, {wrong} of {len(labels)} test samples wrong")
        weights = dataset.get_metadata().sort("weight", descending=True)
        print(f"\nwhat is drawn most often now:\n{weights.head(5)}")


def write(runtime: drt.DatasetRuntime, base: Path) -> list[Path]:
    """Write both splits; give their directories."""
    paths = []
    for result in runtime.write_cache([Digits("train"), Digits("test")], base):
        match result:
            case drt.CacheWriteSuccess(_, path):
                paths.append(path)
            case drt.CacheWriteError(name, message):
                raise SystemExit(f"{name}: {message}")
    return paths


def train(
    runtime: drt.DatasetRuntime, path: Path, epochs: int, *, mining: bool
) -> tuple[Classifier, drt.CachedDataset]:
    """Train on shuffled epochs; with `mining`, weight the samples anew after each of them."""
    model = Classifier()
    dataset = runtime.cached_dataset([path], reader_config=drt.ReaderConfig(seed=7))
    everything = in_order(runtime, path)
    for _ in range(epochs):
        batch: list[drt.CachedSample] = []
        for sample in dataset:
            batch.append(sample)
            if len(batch) == BATCH:
                model.learn(*arrays(batch))
                batch.clear()
        if mining:
            losses = pl.DataFrame(
                {
                    "sample_id": pl.Series([sample.sample_id for sample in everything], dtype=pl.UInt64),
                    # What the model is sure of is still drawn, and no single sample, which may be mislabelled, is drawn all the time.
                    "weight": 0.2 + np.minimum(model.losses(*arrays(everything)), 4.0),
                }
            )
            table = dataset.get_metadata().drop("weight")
            dataset.update_metadata(table.join(losses, on="sample_id", how="left", maintain_order="left"))
    return model, dataset


def in_order(runtime: drt.DatasetRuntime, path: Path) -> list[drt.CachedSample]:
    """All samples of a cache."""
    return list(runtime.cached_dataset([path], reader_config=drt.ReaderConfig(seed=7, shuffle=False)))


def arrays(samples: list[drt.CachedSample]) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """Pixels from 0 to 1 with a constant behind them, and labels."""
    pixels = np.frombuffer(b"".join(sample.data for sample in samples), np.uint8).reshape(-1, 64) / 16
    labels = np.array([sample.metadata["label"] for sample in samples], np.int64)
    return np.hstack([pixels, np.ones((len(samples), 1))]), labels


if __name__ == "__main__":
    main()
