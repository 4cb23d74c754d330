"""Figures of all rounds, and the table that they make. Knows nothing of how they were measured."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from compare.lines import BEST_PEER, Goal, Line

#: One measurement: `value` in the unit of its line, and processor seconds of all threads (`cpu`) and of the consumer (`own`).
Figures = Mapping[str, float]


@dataclass
class Row:
    """One line on one set: the figures of each candidate, one for each round."""

    line: Line
    set_name: str
    figures: dict[str, list[Figures]] = field(default_factory=dict)
    #: Why a candidate has no figures.
    missing: dict[str, str] = field(default_factory=dict)
    #: How long measuring took.
    seconds: float = 0.0

    def median(self, candidate: str, key: str = "value") -> float | None:
        """Over all rounds."""
        found = [figures[key] for figures in self.figures.get(candidate, ()) if key in figures]
        return statistics.median(found) if found else None

    def ratio(self, candidate: str, base: str = "ours", key: str = "value") -> float | None:
        """How many times as much time, or memory, another takes: the median of the ratios within the rounds."""
        pairs = zip(self.figures.get(candidate, ()), self.figures.get(base, ()), strict=False)
        ratios = [theirs[key] / mine[key] for theirs, mine in pairs]
        return statistics.median(ratios) if ratios else None

    def noise(self, candidate: str) -> float | None:
        """The interquartile range, as a part of the median."""
        found = sorted(figures["value"] for figures in self.figures.get(candidate, ()))
        if len(found) < 2:
            return None
        low, middle, high = statistics.quantiles(found, n=4, method="inclusive")
        return (high - low) / middle

    def best(self, candidates: Sequence[str]) -> str | None:
        """Who of these takes the least."""
        medians = {name: found for name in candidates if (found := self.median(name)) is not None}
        return min(medians, key=medians.__getitem__) if medians else None

    def verdict(self, goal: Goal, peers: Sequence[str]) -> tuple[bool | None, str]:
        """Whether a goal is met (`None`: it could not be measured), and what was found."""
        if goal.kind == "value":
            found = self.median("ours")
            shown = f"<= {quantity(goal.bound, self.line.unit)}"
            return (None if found is None else found <= goal.bound), shown
        other = self.best(peers) if goal.of == BEST_PEER else goal.of
        ratio = None if other is None else self.ratio(other)
        name = f"{BEST_PEER} ({other})" if goal.of == BEST_PEER and other else goal.of
        if goal.kind == "cpu":
            ratio = None if other is None else self.ratio(other, key="cpu")
            return (
                None if ratio is None else ratio >= goal.bound
            ), f"CPU {number(ratio)} of {name} (>= {goal.bound:g})"
        if goal.kind == "rate":
            return (None if ratio is None else ratio >= goal.bound), f"{number(ratio)} of {name} (>= {goal.bound:g})"
        inverse = None if ratio is None else 1 / ratio
        return (None if inverse is None else inverse <= goal.bound), f"{number(inverse)}x {name} (<= {goal.bound:g}x)"


def number(value: float | None) -> str:
    """A ratio."""
    return "-" if value is None else f"{value:.2f}"


def quantity(value: float | None, unit: str) -> str:
    """Seconds or bytes, in a unit that suits them."""
    if value is None:
        return "-"
    if not unit:
        return number(value)
    steps = {
        "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
        "B": ((1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")),
    }[unit]
    size, name = next((step for step in steps if abs(value) >= step[0]), steps[-1])
    return f"{value / size:.{0 if value / size >= 100 else 1 if value / size >= 10 else 2}f} {name}"


WORDS = {True: "met", False: "MISSED", None: "not measured"}


def summary(rows: Sequence[Row], peers: Sequence[str]) -> str:
    """One line for each row: ours, the best peer, the goals."""
    text = [
        "| line | set | ours | CPU, all threads | CPU, consumer | noise | best peer | 0.4.8 | goals: found (wanted) | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        unit = row.line.unit
        best = row.best(peers)
        verdicts = [row.verdict(goal, peers) for goal in row.line.goals[row.set_name]]
        word = WORDS[combined([met for met, _ in verdicts])] if verdicts else ""
        against = [f"{name} {quantity(row.median(name), unit)}, {number(row.ratio(name))}" for name in (best,) if name]
        cells = [
            row.line.name,
            row.set_name,
            quantity(row.median("ours"), unit),
            quantity(row.median("ours", "cpu"), "s"),
            quantity(row.median("ours", "own"), "s"),
            percent(row.noise("ours")),
            *(against or ["-"]),
            number(row.ratio("0.4.8")),
            "; ".join(shown for _, shown in verdicts),
            word,
        ]
        text.append(f"| {' | '.join(cells)} |")
    failures = {(name, why): row for row in reversed(rows) for name, why in row.missing.items()}
    text.extend(
        f"\n{name} is missing from '{row.line.name}' on {row.set_name} on: {why}"
        for (name, why), row in failures.items()
    )
    return "\n".join(text)


def combined(verdicts: Sequence[bool | None]) -> bool | None:
    """One word for several goals: missed as soon as one is, met only if all are."""
    if False in verdicts:
        return False
    return None if None in verdicts else True


def percent(part: float | None) -> str:
    """A part of something."""
    return "-" if part is None else f"{part:.0%}"


def details(rows: Sequence[Row]) -> str:
    """All candidates of all rows."""
    text = [
        "| line | set | candidate | median | CPU, all threads | CPU, consumer | noise | ours is so many times as fast |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        unit = row.line.unit
        order = sorted(row.figures, key=lambda name: row.median(name) or 0.0)
        for name in order:
            cells = [
                row.line.name,
                row.set_name,
                name,
                quantity(row.median(name), unit),
                quantity(row.median(name, "cpu"), "s"),
                quantity(row.median(name, "own"), "s"),
                percent(row.noise(name)),
                number(row.ratio(name)),
            ]
            text.append(f"| {' | '.join(cells)} |")
        text.extend(
            f"| {row.line.name} | {row.set_name} | {name} | {why} | | | | |" for name, why in row.missing.items()
        )
    return "\n".join(text)
