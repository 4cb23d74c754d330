"""What is measured, seen from within the process of a candidate. Each measure gives what one sample costs."""

import importlib
import random
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from compare.candidates import Entry
from compare.candidates.candidate import Candidate
from compare.sizes import SIZES

Figures = dict[str, float]


def consume(samples: Iterable[object]) -> None:
    """Takes samples one by one, as a training loop does."""
    for _ in samples:
        pass


def timed(work: Callable[[], object], samples: int = 1) -> Figures:
    """Seconds for each sample: by the clock, processor time of all threads, and of this one, which consumes."""
    wall, cpu, own = time.perf_counter(), time.process_time(), time.thread_time()
    work()
    own, cpu, wall = time.thread_time() - own, time.process_time() - cpu, time.perf_counter() - wall
    return {"value": wall / samples, "cpu": cpu / samples, "own": own / samples}


class Bench:
    """One candidate, and the sets that it has written."""

    def __init__(self, entry: Entry) -> None:
        module = importlib.import_module(f"compare.candidates.{entry.module}")
        self._make: Callable[..., Candidate] = partial(module.Candidate, **entry.options)
        self._candidates: dict[str, Candidate] = {}
        self._sources: dict[str, Any] = {}
        self._cumulative: dict[str, list[float]] = {}

    def prepare(self, set_name: str, count: int, directory: str | None) -> None:
        """Takes on a set of so many samples, and writes it if a directory is given."""
        candidate = self._candidates[set_name] = self._make(replace(SIZES[set_name], count=count))
        if directory is not None:
            Path(directory).mkdir(parents=True)
            candidate.write(self._source(set_name), Path(directory), synced=False)

    def open(self, set_name: str, directory: str) -> None:
        """Opens a set that was written, by this candidate or another."""
        candidate = self._candidates[set_name]
        candidate.open(Path(directory))
        if candidate.delivers:
            self._check(candidate)

    def release(self, set_name: str) -> None:
        """Lets go of a set."""
        self._candidates.pop(set_name).close()
        self._sources.pop(set_name, None)
        self._cumulative.pop(set_name, None)

    def write(self, set_name: str, count: int, seed: int, directory: str, synced: bool = False) -> Figures:
        """Writes the first samples of a set once more."""
        source, target = self._source(set_name), Path(directory)
        source.rows = count
        target.mkdir(parents=True)
        try:
            return timed(lambda: self._candidates[set_name].write(source, target, synced=synced), count)
        finally:
            source.rows = self._candidates[set_name].samples.count
            shutil.rmtree(target)

    def in_order(self, set_name: str, count: int, seed: int) -> Figures:
        """Reads samples one after the other, from some row on."""
        candidate = self._candidates[set_name]
        samples = candidate.in_order(random.Random(seed).randrange(candidate.samples.count - count + 1), count)
        return timed(lambda: consume(samples), count)

    def shuffled(self, set_name: str, count: int, seed: int) -> Figures:
        """Reads samples in an order that is known, drawn with replacement."""
        candidate = self._candidates[set_name]
        samples = candidate.shuffled(self._rows(candidate, count, seed))
        return timed(lambda: consume(samples), count)

    def weighted(self, set_name: str, count: int, seed: int) -> Figures:
        """The same, drawn by weight."""
        candidate = self._candidates[set_name]
        if set_name not in self._cumulative:
            self._cumulative[set_name] = list(accumulate(candidate.samples.weights()))
        rows = range(candidate.samples.count)
        drawn = random.Random(seed).choices(rows, cum_weights=self._cumulative[set_name], k=count)
        samples = candidate.weighted(drawn)
        return timed(lambda: consume(samples), count)

    def get_item(self, set_name: str, count: int, seed: int) -> Figures:
        """Reads samples one by one, where nobody knows which one is next."""
        candidate = self._candidates[set_name]
        get, rows = candidate.get_item, self._rows(candidate, count, seed)

        def work() -> None:
            for row in rows:
                get(row)

        return timed(work, count)

    def _source(self, set_name: str) -> Any:
        if set_name not in self._sources:
            self._sources[set_name] = self._candidates[set_name].source()
        return self._sources[set_name]

    @staticmethod
    def _rows(candidate: Candidate, count: int, seed: int) -> list[int]:
        return random.Random(seed).choices(range(candidate.samples.count), k=count)

    def _check(self, candidate: Candidate) -> None:
        """Nobody is fast by giving out something else."""
        samples = candidate.samples
        payloads = samples.payloads()

        def wanted(row: int) -> tuple[Any, ...]:
            return payloads[row % len(payloads)], *samples.row(row).values()

        def compare(what: str, row: int | None, given: Any) -> None:
            found = candidate.as_sample(given)
            if found != wanted(row) if row is not None else found[0] not in payloads:
                raise SystemExit(f"row {row} {what} is not what was written")

        for row, given in zip(range(100), islice(candidate.in_order(0, 100), 100), strict=True):
            compare("in order", row, given)
        rows = self._rows(candidate, 100, 7)
        for row in rows:
            compare("by get_item", row, candidate.get_item(row))
        for row, given in zip(rows, candidate.shuffled(rows), strict=True):
            compare("shuffled", candidate.row_of(given, row), given)
