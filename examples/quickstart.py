"""The main job on real data: cache the handwritten digits of scikit-learn, read them back, rebalance them.

Run it with `make demo`, or by hand: `python examples/quickstart.py [--keep DIR] [--picture FILE]`.
"""

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
from PIL import Image, ImageDraw
from sklearn.datasets import load_digits

import dataset_rt as drt

SIDE = 8
READ_SAMPLES = 200_000


class Digits:
    """One split of the digits: 8 x 8 pixels of one byte each, with label and split beside them."""

    def __init__(self, split: str) -> None:
        self.name = f"digits-{split}"
        self.split = split

    def __iter__(self) -> Iterator[drt.CacheInput]:
        digits: Any = load_digits()
        for number, (pixels, label) in enumerate(zip(digits.images, digits.target, strict=True)):
            if ("test" if number % 7 == 0 else "train") == self.split:
                yield drt.CacheInput(pixels.astype("uint8").tobytes(), {"label": int(label), "split": self.split})


def main() -> None:
    """Parse the command line and run the job in a directory that is removed unless it is to be kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the caches in DIR")
    parser.add_argument("--picture", type=Path, metavar="FILE", default=Path("quickstart.png"), help="contact sheet")
    arguments = parser.parse_args()
    if arguments.keep is not None:
        run(arguments.keep, arguments.picture)
        print(f"caches kept in {arguments.keep}")
    else:
        with tempfile.TemporaryDirectory(prefix="dataset_rt_") as base:
            run(Path(base), arguments.picture)
        print("caches removed; --keep DIR keeps them")


def run(base: Path, picture: Path) -> None:
    """Write, read in order, unbalance, rebalance, look one sample up, reopen."""
    runtime = drt.DatasetRuntime(num_workers=2)
    config = drt.ReaderConfig(seed=42)

    started = time.perf_counter()
    paths = []
    for result in runtime.write_cache([Digits("train"), Digits("test")], base):
        match result:
            case drt.CacheWriteSuccess(name, path):
                print(f"wrote {name} to {path}")
                paths.append(path)
            case drt.CacheWriteError(name, message):
                raise SystemExit(f"could not write {name}: {message}")
    write_seconds = time.perf_counter() - started

    in_order = runtime.cached_dataset(paths, reader_config=drt.ReaderConfig(seed=42, shuffle=False))
    rows = len(in_order)
    print(f"\n{rows} samples, {size_of(base) / 1024:.0f} KiB on disk")
    labels = [sample.metadata["label"] for sample in islice(in_order, 20)]
    print(f"first labels in order: {labels}")

    dataset = runtime.cached_dataset(paths, reader_config=config)
    table = dataset.get_metadata()
    print(f"\nthe table that decides what is read:\n{table}")

    # Every zero is kept, and of the digit d about one in d + 1.
    label = pl.col("label")
    unbalanced = table.filter(pl.col("sample_id") % (label + 1) == 0)
    dataset.update_metadata(unbalanced)
    print(f"\nclasses after filtering to {len(dataset)} samples, one shuffled epoch:\n  {class_counts(dataset)}")

    dataset.update_metadata(unbalanced.with_columns(weight=1.0 / pl.len().over("label")))
    print(f"with weights 1 / class size, one shuffled epoch:\n  {class_counts(dataset)}")

    row = table.row(-1, named=True)
    sample = dataset.get_item(row["cache_id"], row["sample_id"])
    print(f"\nsample {sample.sample_id} of cache {sample.cache_id}: {sample.metadata}, {len(sample.data)} bytes")

    first = epoch_of(runtime.cached_dataset(paths, reader_config=config))
    again = epoch_of(runtime.cached_dataset(paths, reader_config=config))
    other = epoch_of(runtime.cached_dataset(paths, reader_config=drt.ReaderConfig(seed=43)))
    print(f"same seed, same epoch: {first == again}; another seed, same epoch: {first == other}")

    print(f"\nwrite    {rows / write_seconds:>12,.0f} samples/s ({rows} samples, synced to disk)")
    print(f"ordered  {read_rate(in_order):>12,.0f} samples/s ({READ_SAMPLES} samples)")
    print(f"shuffled {read_rate(dataset):>12,.0f} samples/s ({READ_SAMPLES} samples)")

    save_contact_sheet(dataset, picture)
    print(f"\none shuffled batch, with labels: {picture}")


def size_of(folder: Path) -> int:
    """Bytes of all files below `folder`."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def class_counts(dataset: drt.CachedDataset) -> str:
    """How often each label comes in one epoch."""
    counts = Counter(sample.metadata["label"] for sample in dataset)
    return "  ".join(f"{label}: {counts[label]}" for label in range(10))


def epoch_of(dataset: drt.CachedDataset) -> list[tuple[int, int]]:
    """Identities of one epoch in the order of reading."""
    return [(sample.cache_id, sample.sample_id) for sample in dataset]


def read_rate(dataset: drt.CachedDataset) -> float:
    """Samples per second of a plain loop over the dataset."""
    dataset.set_epoch_len(READ_SAMPLES)
    started = time.perf_counter()
    for _ in dataset:
        pass
    return READ_SAMPLES / (time.perf_counter() - started)


def save_contact_sheet(dataset: drt.CachedDataset, file: Path, columns: int = 12, rows: int = 6) -> None:
    """Draw the next samples side by side, enlarged, each above its label."""
    zoom, margin, caption = 6, 6, 14
    cell_width, cell_height = SIDE * zoom + margin, SIDE * zoom + margin + caption
    sheet = Image.new("L", (columns * cell_width + margin, rows * cell_height + margin), 255)
    draw = ImageDraw.Draw(sheet)
    dataset.set_epoch_len(columns * rows)
    for position, sample in enumerate(dataset):
        left = margin + position % columns * cell_width
        top = margin + position // columns * cell_height
        digit = Image.frombytes("L", (SIDE, SIDE), sample.data).point(
            [max(0, 255 - ink * 255 // 16) for ink in range(256)]
        )
        sheet.paste(digit.resize((SIDE * zoom, SIDE * zoom), Image.Resampling.NEAREST), (left, top))
        draw.text((left + SIDE * zoom // 2 - 3, top + SIDE * zoom + 1), str(sample.metadata["label"]), fill=0)
    file.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(file)


if __name__ == "__main__":
    main()
