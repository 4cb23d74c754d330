"""Measures loaders against a `DataLoader` over samples that lie ready in a list, and what loading workers take in memory.

    python benches/python/loader.py [--rounds N] [--workers N] [--samples N] [--directory DIR] [--json FILE]
    python benches/python/loader.py --memory [--rows N] [--directory DIR] [--json FILE]

Speed: 1 KiB samples in batches of 64, collated as lists. Every round measures every candidate once, in a rotated order;
ratios are taken within a round, and their median is printed. A ratio of 1 is as fast as the floor.

Memory: the bytes that are pickled to a worker, and what a worker takes beyond one that has imported the same modules and
does nothing.
"""

import argparse
import io
import json
import multiprocessing
import multiprocessing.reduction
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
from batches import first_batch
from torch.utils.data import DataLoader, Dataset

import dataset_rt as drt

PAYLOAD, BATCH = 1024, 64
WRITER = drt.WriterConfig(show_progress=False)


class Numbered:
    """Samples that only say which they are."""

    def __init__(self, name: str, count: int, payload: int) -> None:
        self.name, self.count, self.payload = name, count, payload

    def __iter__(self) -> Iterator[drt.CacheInput]:
        filling = bytes(max(0, self.payload - 8))
        for row in range(self.count):
            yield drt.CacheInput(row.to_bytes(8, "little") + filling, {"number": row})


class Ready(Dataset[drt.CachedSample]):
    """The floor: samples that were made before."""

    def __init__(self, samples: list[drt.CachedSample]) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, row: int) -> drt.CachedSample:
        return self.samples[row]


def as_list(batch: list[Any]) -> list[Any]:
    """Collation without work."""
    return batch


def cached(runtime: drt.DatasetRuntime, directory: Path, count: int, payload: int) -> drt.CachedDataset:
    """A dataset over a new cache."""
    (result,) = runtime.write_cache(Numbered("samples", count, payload), directory, writer_config=WRITER)
    if not isinstance(result, drt.CacheWriteSuccess):
        raise SystemExit(f"the cache could not be written: {result.message}")
    return runtime.cached_dataset([result.path], reader_config=drt.ReaderConfig(seed=1, shuffle=False))


def whole_pass(loader: DataLoader[Any]) -> float:
    """Seconds for each sample of a pass."""
    started, samples = time.perf_counter(), 0
    for batch in loader:
        samples += len(batch)
    return (time.perf_counter() - started) / samples


def speed(directory: Path, rounds: int, workers: int, samples: int) -> dict[str, float]:
    """Measure everything, print a table, return the ratios."""
    runtime = drt.DatasetRuntime(num_workers=1)
    dataset = cached(runtime, directory, samples, PAYLOAD)
    ready = Ready(list(dataset))
    ratios: dict[str, float] = {}
    print("| workers | order | measured | floor | ours | floor / ours |\n|---|---|---|---|---|---|")
    for count in (0, workers):
        floor_given: dict[str, Any] = {"batch_size": BATCH, "collate_fn": as_list, "num_workers": count}
        given = {**floor_given, "native_num_workers": 1, "verbose": False, "multiprocessing_context": "fork"}
        if count:
            floor_given |= {"persistent_workers": True, "multiprocessing_context": "fork"}
        measures: list[tuple[str, Callable[[DataLoader[Any]], float]]] = [("a sample", whole_pass)]
        if count:
            measures.append(("first batch of a pass", first_batch))
        pairs = {
            shuffle: (
                DataLoader(ready, shuffle=shuffle, **floor_given),
                dataset.to_torch_dataloader(shuffle=shuffle, **given),
            )
            for shuffle in (False, True)
        }
        candidates = [
            (name, shuffle, side, measure, loader)
            for shuffle, loaders in pairs.items()
            for side, loader in enumerate(loaders)
            for name, measure in measures
        ]
        times: dict[tuple[str, bool, int], list[float]] = {}
        for number in range(-1, rounds):
            shift = number % len(candidates)
            for name, shuffle, side, measure, loader in candidates[shift:] + candidates[:shift]:
                taken = measure(loader)
                # The first round only starts workers and fills caches.
                if number >= 0:
                    times.setdefault((name, shuffle, side), []).append(taken)
        for name, _ in measures:
            for shuffle in pairs:
                floor, ours = times[name, shuffle, 0], times[name, shuffle, 1]
                ratio = statistics.median(theirs / mine for theirs, mine in zip(floor, ours, strict=True))
                order = "shuffled" if shuffle else "in order"
                ratios[f"{count} workers, {order}, {name}"] = ratio
                shown = [f"{statistics.median(each) * 1e6:,.2f} us" for each in (floor, ours)]
                print(f"| {count} | {order} | {name} | {shown[0]} | {shown[1]} | {ratio:.2f} |", flush=True)
    return ratios


class TellMemory:
    """Collation in a worker: now and then the worker's memory in KiB, which takes milliseconds to find out."""

    def __init__(self) -> None:
        self.batches = 0

    def __call__(self, batch: list[Any]) -> dict[str, int]:
        self.batches += 1
        if self.batches % 500 != 1:
            return {}
        fields = (line.split() for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
        return {field[0].rstrip(":"): int(field[1]) for field in fields}


class Counting(io.RawIOBase):
    """A file that counts what goes through it."""

    def __init__(self, file: Any) -> None:
        self.file, self.written = file, 0

    def write(self, data: Any) -> int:
        self.written += len(data)
        self.file.write(data)
        return len(data)


def memory(directory: Path, rows: int) -> dict[str, dict[str, int]]:
    """Measure every kind of consumer, print a table, return the numbers in KiB, pickled bytes apart."""
    runtime = drt.DatasetRuntime(num_workers=2)
    started = time.perf_counter()
    dataset = cached(runtime, directory, rows, 8)
    print(f"{rows:,} rows, written in {time.perf_counter() - started:.0f} s")
    weight = pl.col("number").hash(7) % 1000 / 500 + 0.1
    dataset.update_metadata(dataset.get_metadata().with_columns(weight=weight))

    pickled: list[int] = []
    dump = multiprocessing.reduction.dump

    def counting_dump(obj: object, file: Any, protocol: int | None = None) -> None:
        counting = Counting(file)
        dump(obj, counting, protocol)
        pickled.append(counting.written)

    multiprocessing.reduction.dump = counting_dump
    common: dict[str, Any] = {"num_workers": 2, "multiprocessing_context": "spawn", "collate_fn": TellMemory()}
    idle = memory_of(DataLoader(Ready([None] * 8), batch_size=1, **common))  # type: ignore[list-item]
    found: dict[str, dict[str, int]] = {}
    print(
        "| consumer | constructed in | pickled | Pss | own (anonymous) | beyond an idle worker |\n|---|---|---|---|---|---|"
    )
    print(f"| idle | | | {idle['Pss'] / 1024:.1f} MiB | {idle['Pss_Anon'] / 1024:.1f} MiB | |")
    for shuffle in (False, True):
        for partition in ("split", "replicate"):
            pickled.clear()
            started = time.perf_counter()
            loader = dataset.to_torch_dataloader(
                batch_size=BATCH, shuffle=shuffle, worker_partition=partition, native_num_workers=1, verbose=False,
                work_dir=directory, **common,
            )  # fmt: skip
            constructed = time.perf_counter() - started
            taken = memory_of(loader)
            # For each worker Python pickles how to begin, and then what the worker is to do.
            taken |= {"Pickled": sum(pickled) // common["num_workers"], "Beyond": taken["Pss_Anon"] - idle["Pss_Anon"]}
            name = f"{'shuffled' if shuffle else 'in order'}, {partition}"
            found[name] = taken
            print(
                f"| {name} | {constructed:.1f} s | {taken['Pickled']:,} B | {taken['Pss'] / 1024:.1f} MiB "
                f"| {taken['Pss_Anon'] / 1024:.1f} MiB | {taken['Beyond'] / 1024:.1f} MiB |",
                flush=True,
            )
    return found


def memory_of(loader: DataLoader[Any]) -> dict[str, int]:
    """The most that one of the workers says within 4,000 batches."""
    told: dict[str, int] = {}
    for number, answer in enumerate(loader):
        if number >= 4000:
            break
        told = max(told, answer, key=lambda each: each.get("Pss_Anon", 0))
    return told


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--memory", action="store_true", help="measure memory instead of speed")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--samples", type=int, default=20_000, help="samples of the speed measurement")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the memory measurement")
    parser.add_argument("--directory", type=Path, help="where caches are written")
    parser.add_argument("--json", type=Path, help="where the numbers go")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        numbers: Any
        if arguments.memory:
            numbers = memory(Path(directory), arguments.rows)
        else:
            numbers = speed(Path(directory), arguments.rounds, arguments.workers, arguments.samples)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(numbers, indent=2) + "\n")


if __name__ == "__main__":
    main()
