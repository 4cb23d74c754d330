"""The sets of samples that one candidate holds: written, opened, and compared with what was written."""

import importlib
import random
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from compare.candidates import Entry
from compare.candidates.candidate import Candidate
from compare.sizes import SIZES


@dataclass
class Held:
    """One set."""

    candidate: Candidate
    #: Where the samples lie that the candidate reads.
    data: Path
    #: A place for what is written and removed again.
    scratch: Path
    #: The other sets of the candidate, by name.
    beside: "dict[str, Held]"
    #: Data loaders, which live as long as the set.
    loaders: dict[str, Any] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Samples of the set."""
        return self.candidate.samples.count

    @cached_property
    def source(self) -> Any:
        """The samples as the candidate is given them."""
        return self.candidate.source()

    @cached_property
    def weight_sums(self) -> list[float]:
        """The weights of all rows, added up."""
        return list(accumulate(self.candidate.samples.weights()))

    def rows(self, count: int, seed: int) -> list[int]:
        """So many rows, drawn with replacement."""
        return random.Random(seed).choices(range(self.count), k=count)


class Holder:
    """Everything that one candidate holds."""

    def __init__(self, entry: Entry) -> None:
        module = importlib.import_module(f"compare.candidates.{entry.module}")
        self._make = partial(module.Candidate, **entry.options)
        self._held: dict[str, Held] = {}

    def prepare(self, set_name: str, count: int, data: str, scratch: str, *, writes: bool, opens: bool) -> None:
        """Takes on a set of so many samples; writes it and opens it where that is wanted."""
        candidate = self._make(replace(SIZES[set_name], count=count))
        held = self._held[set_name] = Held(candidate, Path(data), Path(scratch), self._held)
        if writes:
            held.data.mkdir(parents=True)
            candidate.write(held.source, held.data, synced=False)
        if opens:
            candidate.open(held.data)
            candidate.opened = True
            if candidate.delivers:
                check(held)

    def release(self, set_name: str) -> None:
        """Lets go of a set."""
        held = self._held.pop(set_name)
        held.loaders.clear()
        if held.candidate.opened:
            held.candidate.close()

    def measure(self, measure: str, set_name: str, count: int, seed: int, **arguments: Any) -> dict[str, float]:
        """The figures of a function `module.name` of `compare.measures`."""
        module, _, name = measure.partition(".")
        function = getattr(importlib.import_module(f"compare.measures.{module}"), name)
        found: dict[str, float] = function(self._held[set_name], count, seed, **arguments)
        return found


def check(held: Held) -> None:
    """Nobody is fast by giving out something else."""
    candidate, samples = held.candidate, held.candidate.samples
    payloads = samples.payloads()

    def compare(what: str, row: int | None, given: Any) -> None:
        found = candidate.as_sample(given)
        if row is None:
            right = found[0] in payloads
        else:
            right = found == (payloads[row % len(payloads)], *samples.row(row).values())
        if not right:
            raise SystemExit(f"row {row} {what} is not what was written")

    for row, given in zip(range(100), islice(candidate.in_order(0, 100), 100), strict=True):
        compare("in order", row, given)
    rows = held.rows(100, 7)
    for row in rows:
        compare("by get_item", row, candidate.get_item(row))
    for row, given in zip(rows, candidate.shuffled(rows), strict=True):
        compare("shuffled", candidate.row_of(given, row), given)
