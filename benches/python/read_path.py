"""Measures writing and warm reading against the floors, interleaved in one run, and prints a Markdown table.

    python benches/python/read_path.py [--quick] [--rounds N] [--directory DIR] [--json FILE]

Wall is the median over all rounds; CPU is the time of the consuming thread alone (`CLOCK_THREAD_CPUTIME_ID`), also a
median. Every round measures every candidate once, in a rotated order, so that a noisy minute hits all of them.
"""

import argparse
import json
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from floors import CopyFloor, NativeFloor, PreparedFloor, PythonFloor
from plain import PlainWriter
from sets import QUICK_SETS, SETS, SampleSet, SetSource

import dataset_rt as drt

WRITER = drt.WriterConfig(show_progress=False)
FLOORS = ("python", "native", "objects", "memcpy", "memcpy in turns")


@dataclass
class Timings:
    """Seconds per sample, one entry for each round."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def measure(self, work: Callable[[], object], samples: int) -> None:
        """Runs `work`, which handles `samples` samples."""
        wall, cpu = time.perf_counter(), time.thread_time()
        work()
        self.cpu.append((time.thread_time() - cpu) / samples)
        self.wall.append((time.perf_counter() - wall) / samples)


def consume(samples: Iterable[object]) -> None:
    """Takes samples one by one, as a training loop does."""
    for _ in samples:
        pass


class Bench:
    """One sample set, written once, with everything that is measured on it."""

    def __init__(self, samples: SampleSet, directory: Path, runtime: drt.DatasetRuntime) -> None:
        self.samples = samples
        self.directory = directory
        self.runtime = runtime
        self.source = SetSource(samples, drt.CacheInput)
        (result,) = runtime.write_cache(self.source, directory / "read", writer_config=WRITER)
        if not isinstance(result, drt.CacheWriteSuccess):
            raise SystemExit(f"the cache could not be written: {result.message}")
        self.cache = result.path
        ordered = self._open(shuffle=False)
        shuffled = self._open(shuffle=True)
        weighted = self._open(shuffle=True)
        self.random = random.Random(7)
        frame = weighted.get_metadata()
        self.weights = [self.random.uniform(0.1, 2.0) for _ in range(samples.count)]
        weighted.update_metadata(frame.with_columns(pl.Series("weight", self.weights)))
        self.cache_id = int(frame["cache_id"][0])
        self.datasets = {"ordered": ordered, "shuffled": shuffled, "weighted": weighted}
        for dataset in self.datasets.values():
            dataset.set_epoch_len(samples.batch)
        self.floor = PythonFloor(self.cache, self.cache_id, samples.columns())
        self.native = NativeFloor(self.floor, self.cache, samples.payload_bytes)
        self.copy = CopyFloor(PreparedFloor(self.floor), samples.payload_bytes)
        self.position = 0
        self.timings: dict[tuple[str, str], Timings] = {}

    def _open(self, *, shuffle: bool) -> drt.CachedDataset:
        return self.runtime.cached_dataset([self.cache], reader_config=drt.ReaderConfig(seed=1, shuffle=shuffle))

    def round(self, number: int) -> None:
        """Measures everything once."""
        work: list[tuple[str, str, Callable[[], object]]] = []
        for mode, dataset in self.datasets.items():
            python, native, objects, memcpy, turns = (self.order(mode) for _ in range(5))
            work.append((mode, "ours", lambda dataset=dataset: consume(dataset)))
            work.append((mode, "python", lambda order=python: consume(self.floor.samples(order))))
            work.append((mode, "native", lambda order=native: consume(self.native.reader.samples(order))))
            work.append((mode, "objects", lambda order=objects: consume(self.native.objects(len(order)))))
            work.append((mode, "memcpy", lambda order=memcpy: self.copy.copy(order)))
            work.append((mode, "memcpy in turns", lambda order=turns: self.copy.copy(order, buffers=2)))
        for candidate, get in (
            ("ours", self.datasets["shuffled"].get_item),
            ("python", self.floor.get_item),
            ("native", self.native.reader.get_item),
        ):
            rows = self.order("shuffled")
            work.append(("get_item", candidate, lambda get=get, rows=rows: self._get(get, rows)))
        shift = number % len(work)
        for mode, candidate, run in work[shift:] + work[:shift]:
            self.timings.setdefault((mode, candidate), Timings()).measure(run, self.samples.batch)
        self._write_round()

    def order(self, mode: str) -> list[int]:
        """Rows for one measurement. Other ones each time, as a dataset gives: nobody finds in a cache what it has just read."""
        count, batch = self.samples.count, self.samples.batch
        if mode == "ordered":
            self.position += count // 2 + batch
            return [(self.position + row) % count for row in range(batch)]
        return self.random.choices(range(count), self.weights if mode == "weighted" else None, k=batch)

    def _get(self, get: Callable[[int, int], object], rows: list[int]) -> None:
        cache_id = self.cache_id
        for row in rows:
            get(cache_id, row)

    def _write_round(self) -> None:
        target = self.directory / "written"
        target.mkdir()
        ours = self.timings.setdefault(("write", "ours"), Timings())
        ours.measure(lambda: self.runtime.write_cache(self.source, target, writer_config=WRITER), self.samples.count)
        shutil.rmtree(target)
        plain = self.directory / "plain.bin"
        python = self.timings.setdefault(("write", "python"), Timings())
        python.measure(lambda: PlainWriter(plain).write(iter(self.source)), self.samples.count)
        plain.unlink()


def nanoseconds(seconds: float) -> str:
    """A time for the table."""
    return f"{seconds * 1e9:,.0f}" if seconds < 1e-5 else f"{seconds * 1e6:,.1f} us"


def report(benches: list[Bench]) -> str:
    """The table: times per sample of ours, and how many times faster than the floors it is: wall (CPU)."""
    lines = [
        f"| payload | operation | wall | CPU | rate | {' | '.join(f'{floor} / ours' for floor in FLOORS)} |",
        f"|{'---|' * (5 + len(FLOORS))}",
    ]
    for bench in benches:
        for mode in ("write", "ordered", "shuffled", "weighted", "get_item"):
            ours = bench.timings[mode, "ours"]
            wall, cpu = statistics.median(ours.wall), statistics.median(ours.cpu)
            floors = [bench.timings.get((mode, floor)) for floor in FLOORS]
            cells = [
                bench.samples.name,
                mode,
                nanoseconds(wall),
                nanoseconds(cpu),
                f"{1 / wall:,.0f}/s",
                *(
                    f"{ratio(floor.wall, ours.wall):.2f} ({ratio(floor.cpu, ours.cpu):.2f})" if floor else ""
                    for floor in floors
                ),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def ratio(floor: list[float], ours: list[float]) -> float:
    """Median over the rounds of the ratio within a round."""
    return statistics.median(theirs / mine for theirs, mine in zip(floor, ours, strict=True))


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the samples")
    parser.add_argument("--rounds", type=int, default=7, help="measurements of everything (default: 7)")
    parser.add_argument("--only", help="one payload size, by name: '64 B'")
    parser.add_argument("--workers", type=int, default=2, help="native threads (default: 2)")
    parser.add_argument("--directory", type=Path, help="where to put the caches (default: the temporary directory)")
    parser.add_argument("--json", type=Path, help="also write all timings to this file")
    arguments = parser.parse_args()
    sets = [one for one in (QUICK_SETS if arguments.quick else SETS) if arguments.only in (None, one.name)]
    directory = Path(tempfile.mkdtemp(prefix="dataset-rt-bench-", dir=arguments.directory))
    try:
        with drt.DatasetRuntime(num_workers=arguments.workers) as runtime:
            benches = []
            for samples in sets:
                place = directory / str(samples.payload_bytes)
                place.mkdir()
                bench = Bench(samples, place, runtime)
                for number in range(arguments.rounds):
                    bench.round(number)
                benches.append(bench)
            print(report(benches))
    finally:
        shutil.rmtree(directory)
    if arguments.json:
        timings = [
            {
                "payload": bench.samples.name,
                "operation": mode,
                "candidate": candidate,
                "wall": time.wall,
                "cpu": time.cpu,
            }
            for bench in benches
            for (mode, candidate), time in bench.timings.items()
        ]
        arguments.json.write_text(json.dumps(timings, indent=2))


if __name__ == "__main__":
    main()
