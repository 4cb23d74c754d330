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
        self._environments = environments
        self._children = {name: self._start(name) for name in names if name not in self._missing}

    def _start(self, name: str) -> Child:
        entry = ENTRIES[name]
        library = [Path(dataset_rt.__file__).parents[1]] if entry.library else []
        return Child(entry, self._environments.python[entry.environment], library, TARGET / "log.txt")

    def measure(self, set_name: str, count: int, lines: Sequence[Line], further: Mapping[str, int]) -> None:
        """All rounds of all lines on one set. `further`: other sets that a line may need, and their counts."""
        if not lines:
            return
        started = time.monotonic()
        place = self._places[lines[0].place]
        for name, rows in further.items():
            self._prepare(name, rows, [line for line in lines if line.beside == name], place)
        ready = self._prepare(set_name, count, lines, place)
        rows = [Row(line, set_name) for line in lines]
        self.rows.extend(rows)
        jobs = [(row, self._counts(row, ready, count, place)) for row in rows]
        for number in range(self._rounds):
            for row, counts in jobs:
                if number >= row.line.rounds:
                    continue
                since = time.monotonic()
                # Whoever fails once is out; the others go on.
                names = [name for name in counts if name not in row.missing]
                shift = number % max(1, len(names))
                self._seed += 1
                for name in names[shift:] + names[:shift]:
                    if (found := self._ask(row, name, count, counts[name], place)) is not None:
                        row.figures.setdefault(name, []).append(found)
                row.seconds += time.monotonic() - since
        for each in (set_name, *further):
            self._release(each, ready)
            shutil.rmtree(place / each, ignore_errors=True)
        spent = ", ".join(f"{row.line.name} {row.seconds:.0f} s" for row in rows)
        print(f"{set_name}: {time.monotonic() - started:.0f} s; {spent}", flush=True)

    def _prepare(self, set_name: str, count: int, lines: Sequence[Line], place: Path) -> list[str]:
        """Everyone writes the set, and opens it where a line needs it. Gives those who could."""
        ready = []
        for name, child in self._children.items():
            theirs = [line for line in lines if name in line.candidates and set_name[0] in ENTRIES[name].sets]
            if not theirs or name in self._missing:
                continue
            reads = ENTRIES[name].reads
            writes = reads == "itself" and any(line.writes for line in theirs)
            opens = reads is not None and any(line.opens for line in theirs)
            try:
                child.ask(
                    "prepare",
                    set_name=set_name,
                    count=count,
                    writes=writes,
                    opens=opens,
                    **self._paths(set_name, name, place),
                )
                ready.append(name)
            except FailedError as failed:
                self._leave(name, failed)
        return ready

    def _release(self, set_name: str, names: Sequence[str]) -> None:
        for name in names:
            try:
                self._children[name].ask("release", set_name=set_name)
            except FailedError as failed:
                self._leave(name, failed)

    @staticmethod
    def _paths(set_name: str, name: str, place: Path) -> dict[str, Path]:
        reads = ENTRIES[name].reads
        return {
            "data": place / set_name / (name if reads in (None, "itself") else reads),
            "scratch": place / set_name / "written",
        }

    def _counts(self, row: Row, ready: Sequence[str], count: int, place: Path) -> dict[str, int]:
        """How many samples each candidate handles in one measurement: what it does in the time, at most a batch."""
        line = row.line
        row.missing |= {name: why for name, why in self._missing.items() if name in line.candidates}
        names = [name for name in line.candidates if name in ready]
        if line.whole:
            return dict.fromkeys(names, count)
        # A write has a beginning and an end that reading does not have.
        writes = line.measure == "writing.write"
        most = count if writes else min(count, SIZES[row.set_name].batch)
        budget = 3 * self._budget if writes else self._budget
        counts = {}
        for name in names:
            trial = min(TRIAL, most)
            while (found := self._ask(row, name, count, trial, place)) is not None:
                fitting = int(budget / found["value"])
                if fitting < 4 * trial or trial == most:
                    counts[name] = max(min(TRIAL, most), min(most, fitting))
                    break
                trial = min(8 * trial, most)
        return counts

    def _ask(self, row: Row, name: str, of: int, count: int, place: Path) -> Figures | None:
        """One measurement of `count` samples, of the `of` that the set has."""
        line = row.line
        asked = {
            "measure": line.measure,
            "set_name": row.set_name,
            "count": count,
            "seed": self._seed,
            **line.arguments,
        }
        if line.beside:
            asked["small"] = line.beside
        child = self._start(name) if line.own_process else self._children[name]
        try:
            if line.own_process:
                paths = self._paths(row.set_name, name, place)
                child.ask("prepare", set_name=row.set_name, count=of, writes=False, opens=False, **paths)
            found: Figures = child.ask("measure", **asked)
        except FailedError as failed:
            row.missing[name] = str(failed)
            return None
        finally:
            if line.own_process:
                child.end()
        return found

    def _leave(self, name: str, failed: FailedError) -> None:
        self._missing[name] = str(failed)
        print(f"{name} is left out from here on: {failed}", flush=True)

    def end(self) -> None:
        """Ends all processes."""
        for child in self._children.values():
            child.end()
