"""Measures writing against a plain Python writer, and what is left of the interpreter meanwhile; prints Markdown tables.

    python benches/python/write_path.py [--rounds N] [--workers N] [--only NAME] [--directory DIR]

The plain writer appends the same payloads to one file and collects the same metadata in lists; with LZ4 it compresses in
its one thread (needs the package `lz4`). Neither reads anything back. Candidates take turns within each round; ratios are
medians of the ratios of a round. Put the directory on a memory file system, or the disk is what is measured.
"""

import argparse
import importlib.util
import random
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from plain import PlainWriter
from sets import SETS, SetSource

import dataset_rt as drt

PLAIN = drt.WriterConfig(show_progress=False)
LZ4 = drt.WriterConfig(show_progress=False, shard_compression=drt.ShardCompression(algo="lz4"))

#: The least that the rate of the plain writer may be exceeded by, for two native threads.
GOALS = {"64 B": 0.7, "1 KiB": 0.9, "100 KiB": 0.75, "20 KiB text, lz4": 1.0}

COUNTER_GOAL = 0.8


@dataclass(frozen=True)
class Case:
    """One kind of samples, written in two ways."""

    name: str
    source: SetSource
    count: int
    config: drt.WriterConfig
    compress: Callable[[bytes], bytes] | None = None


class CompressedSource:
    """What the plain writer gets when it compresses."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def __iter__(self) -> Iterator[drt.CacheInput]:
        compress = self._case.compress or bytes
        for data, metadata in self._case.source:
            yield drt.CacheInput(compress(data), metadata)


def cases(only: str | None) -> list[Case]:
    """What is measured."""
    by_name = {one.name: one for one in SETS}
    found = [
        Case(name, SetSource(by_name[name], drt.CacheInput), by_name[name].count, PLAIN)
        for name in ("64 B", "1 KiB", "100 KiB")
    ]
    if importlib.util.find_spec("lz4"):
        import lz4.block

        text = replace(by_name["20 KiB"], content="text")
        found.append(Case("20 KiB text, lz4", SetSource(text, drt.CacheInput), text.count, LZ4, lz4.block.compress))
    else:
        print("the package lz4 is not installed: compression is not measured\n")
    return [case for case in found if only in (None, case.name)]


def measure(case: Case, runtime: drt.DatasetRuntime, directory: Path, rounds: int) -> str:
    """Writes by turns and gives a line of the table."""
    seconds: dict[str, list[float]] = {"ours": [], "plain": []}
    plain_source = case.source if case.compress is None else CompressedSource(case)

    def ours() -> None:
        (result,) = runtime.write_cache(case.source, directory / "ours", writer_config=case.config)
        if isinstance(result, drt.CacheWriteError):
            raise SystemExit(result.message)

    def plain() -> None:
        PlainWriter(directory / "plain.bin").write(iter(plain_source))

    for number in range(rounds):
        for name, work in [("ours", ours), ("plain", plain)][:: 1 if number % 2 else -1]:
            started = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - started)
        shutil.rmtree(directory / "ours")
        (directory / "plain.bin").unlink()
    ratio = statistics.median(plain / ours for plain, ours in zip(seconds["plain"], seconds["ours"], strict=True))
    each = [statistics.median(seconds[name]) / case.count * 1e6 for name in ("ours", "plain")]
    goal = GOALS[case.name]
    return (
        f"| {case.name} | {each[0]:,.2f} us | {each[1]:,.2f} us | {ratio:.2f} "
        f"| {goal}, {'met' if ratio >= goal else 'MISSED'} |"
    )


class Counter:
    """A thread that does nothing but count."""

    def __enter__(self) -> "Counter":
        self.count = 0
        self._over = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def _run(self) -> None:
        while not self._over:
            self.count += 1

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._thread.join()

    def rate_during(self, work: Callable[[], object]) -> float:
        """Counts in each second of the work."""
        before, started = self.count, time.perf_counter()
        work()
        return (self.count - before) / (time.perf_counter() - started)


def counter_share(workers: int, directory: Path, rounds: int) -> float:
    """Which part of its idle rate a counting thread keeps while payloads of 100 KiB are written."""
    payloads = [random.Random(number).randbytes(100 << 10) for number in range(16)]

    class Ready:
        name = "ready"

        def __iter__(self) -> Iterator[tuple[bytes, dict[str, int]]]:
            return iter(samples)

    samples = [(payloads[number % 16], {"row": number}) for number in range(3000)]
    shares = []
    with drt.DatasetRuntime(num_workers=workers) as runtime, Counter() as counter:
        for _ in range(rounds):
            idle = counter.rate_during(lambda: time.sleep(0.5))
            writing = counter.rate_during(
                lambda: runtime.write_cache(Ready(), directory / "ready", writer_config=PLAIN)
            )
            shutil.rmtree(directory / "ready")
            shares.append(writing / idle)
    return statistics.median(shares)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="measurements of everything (default: 5)")
    parser.add_argument("--workers", type=int, default=2, help="native threads (default: 2)")
    parser.add_argument("--only", help="one case, by name: '64 B', or 'counter'")
    parser.add_argument("--directory", type=Path, help="where to put the caches (default: the temporary directory)")
    arguments = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="dataset-rt-bench-", dir=arguments.directory))
    try:
        with drt.DatasetRuntime(num_workers=arguments.workers) as runtime:
            print("| payload | ours, a sample | plain | ratio of rates | goal |\n|---|---|---|---|---|")
            for case in cases(arguments.only):
                print(measure(case, runtime, directory, arguments.rounds), flush=True)
        if arguments.only in (None, "counter"):
            print("\n| native threads | share of a counting thread | goal |\n|---|---|---|")
            for workers in sorted({1, arguments.workers}):
                share = counter_share(workers, directory, arguments.rounds)
                print(f"| {workers} | {share:.0%} | {COUNTER_GOAL:.0%} |", flush=True)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
