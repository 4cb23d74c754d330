"""Lets the candidates take turns: each line in each round, in an order that moves on by one from round to round."""

import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import dataset_rt
from compare.candidates import ENTRIES
from compare.child import Child, FailedError
from compare.environments import TARGET, Environments
from compare.lines import Line
from compare.sizes import SIZES
from compare.table import Figures, Row

#: Samples of the first, unmeasured call, which tells how many fit into the time of one measurement.
TRIAL = 64


class Rounds:
    """The processes of all candidates, and what they measured."""

    def __init__(
        self,
        environments: Environments,
        names: Sequence[str],
        places: Mapping[str, Path],
        *,
        rounds: int,
        budget: float,
    ) -> None:
        self.rows: list[Row] = []
        self._places, self._rounds, self._budget = places, rounds, budget
        self._missing = dict(environments.missing)
        self._seed = 0
        library = [Path(dataset_rt.__file__).parents[1]]
        self._children = {
            name: Child(
                entry, environments.python[entry.environment], library if entry.library else [], TARGET / "log.txt"
            )
            for name in names
            if name not in self._missing
            for entry in (ENTRIES[name],)
        }

    def measure(self, set_name: str, count: int, lines: Sequence[Line]) -> None:
        """All rounds of all lines on one set."""
        if not lines:
            return
        started = time.monotonic()
        place = self._places[lines[0].place]
        ready = self._prepare(set_name, count, lines, place)
        rows = [Row(line, set_name) for line in lines]
        jobs = [(row, self._counts(row, ready, count, place)) for row in rows]
        for number in range(self._rounds):
            for row, counts in jobs:
                # Whoever fails once is out; the others go on.
                names = [name for name in counts if name not in row.missing]
                shift = number % max(1, len(names))
                self._seed += 1
                for name in names[shift:] + names[:shift]:
                    if (found := self._ask(row, name, counts[name], place)) is not None:
                        row.figures.setdefault(name, []).append(found)
        for name in ready:
            try:
                self._children[name].ask("release", set_name=set_name)
            except FailedError as failed:
                self._leave(name, failed)
        shutil.rmtree(place / set_name, ignore_errors=True)
        self.rows.extend(rows)
        print(f"{set_name}: {', '.join(line.name for line in lines)}: {time.monotonic() - started:.0f} s", flush=True)

    def _prepare(self, set_name: str, count: int, lines: Sequence[Line], place: Path) -> list[str]:
        """Everyone writes the set and opens it. Gives those who could."""
        wanted = [name for name in self._children if any(name in line.candidates for line in lines)]
        wanted = [name for name in wanted if name not in self._missing and set_name[0] in ENTRIES[name].sets]
        ready = []
        for name in wanted:
            entry = ENTRIES[name]
            writer = name if entry.reads == "itself" else entry.reads
            directory = None if writer is None else place / set_name / writer
            try:
                self._children[name].ask(
                    "prepare", set_name=set_name, count=count, directory=directory if writer == name else None
                )
                if directory is not None:
                    self._children[name].ask("open", set_name=set_name, directory=directory)
                ready.append(name)
            except FailedError as failed:
                self._leave(name, failed)
        return ready

    def _counts(self, row: Row, ready: Sequence[str], count: int, place: Path) -> dict[str, int]:
        """How many samples each candidate handles in one measurement: what it does in the time, at most a batch."""
        line = row.line
        row.missing |= {name: why for name, why in self._missing.items() if name in line.candidates}
        most = count if line.measure == "write" else min(count, SIZES[row.set_name].batch)
        counts = {}
        for name in line.candidates:
            trial = min(TRIAL, most)
            while name in ready and (found := self._ask(row, name, trial, place)) is not None:
                fitting = int(self._budget / found["value"])
                if fitting < 4 * trial or trial == most:
                    counts[name] = max(min(TRIAL, most), min(most, fitting))
                    break
                trial = min(8 * trial, most)
        return counts

    def _ask(self, row: Row, name: str, count: int, place: Path) -> Figures | None:
        arguments = dict(row.line.arguments)
        if row.line.measure == "write":
            arguments["directory"] = place / row.set_name / "written"
        try:
            found: Figures = self._children[name].ask(
                row.line.measure, set_name=row.set_name, count=count, seed=self._seed, **arguments
            )
        except FailedError as failed:
            row.missing[name] = str(failed)
            return None
        return found

    def _leave(self, name: str, failed: FailedError) -> None:
        self._missing[name] = str(failed)
        print(f"{name} is left out from here on: {failed}", flush=True)

    def end(self) -> None:
        """Ends all processes."""
        for child in self._children.values():
            child.end()
