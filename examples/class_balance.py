"""Balance classes of unequal size by weights: not at all, halfway and fully, on the handwritten digits of scikit-learn.

Run it by hand: `python examples/class_balance.py`. It needs scikit-learn and Pillow.
"""

import tempfile
from collections import Counter
from pathlib import Path

import polars as pl
from quickstart import Digits

import dataset_rt as drt


def main() -> None:
    """Make a table with rare classes, and read one epoch with each way to weight it."""
    runtime = drt.DatasetRuntime(num_workers=2)
    with tempfile.TemporaryDirectory(prefix="dataset_rt_") as base:
        dataset = open_digits(runtime, Path(base))
        # Every zero is kept, and of the digit d about one in d + 1.
        table = dataset.get_metadata().filter(pl.col("sample_id") % (pl.col("label") + 1) == 0)
        sizes = dict(table.group_by("label").len().iter_rows())
        print_row("samples", sizes)
        for title, power in (("as they are", 0.0), ("halfway", 0.5), ("balanced", 1.0)):
            dataset.update_metadata(table.with_columns(weight=class_weights(power)))
            # The table is small, so one epoch of its length would tell little about the shares.
            dataset.set_epoch_len(20_000)
            drawn = read_epoch(dataset)
            print(f"\n{title}: weight 1 / size ** {power}")
            print_row("draws", drawn)
            # What balance costs: the few samples of a rare class come again and again.
            print_row("of each", {label: drawn[label] // size for label, size in sizes.items()})


def class_weights(power: float) -> pl.Expr:
    """Weights under which a class is drawn in proportion to its size to the power of `1 - power`."""
    return pl.len().over("label").cast(pl.Float64) ** -power


def open_digits(runtime: drt.DatasetRuntime, base: Path) -> drt.CachedDataset:
    """Write the digits below `base`, and open them for weighted draws."""
    match runtime.from_cache_sources(Digits("train"), base, reader_config=drt.ReaderConfig(seed=42)):
        case drt.CacheSourcesDatasetSuccess(dataset, _):
            return dataset
        case drt.CacheSourcesDatasetError(_, message):
            raise SystemExit(message)


def read_epoch(dataset: drt.CachedDataset) -> Counter[int]:
    """How often each label is drawn in one epoch."""
    return Counter(int(sample.metadata["label"]) for sample in dataset)


def print_row(title: str, numbers: dict[int, int]) -> None:
    """One line with a number for each label."""
    print(f"  {title:<9}" + "".join(f"{label}: {numbers[label]:<6}" for label in sorted(numbers)))


if __name__ == "__main__":
    main()
