"""The lines of the comparison: what is measured on which sets, who takes part, and what the goal is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from compare.candidates import PEERS


@dataclass(frozen=True)
class Goal:
    """What ours must reach, against another candidate or `the best peer` in the same run, or alone.

    `rate`: at least `bound` times as fast. `time`: at most `bound` times as long, or as much. `value`: at most `bound`.
    """

    kind: Literal["rate", "time", "value"]
    bound: float
    of: str = ""


@dataclass(frozen=True)
class Line:
    """One measure, on one or more sets."""

    name: str
    #: A function of `compare.measures.Bench`.
    measure: str
    #: The sets, and the goals on each.
    goals: Mapping[str, tuple[Goal, ...]]
    candidates: tuple[str, ...]
    unit: Literal["s", "B"] = "s"
    place: Literal["memory", "disk"] = "memory"
    #: Further arguments of the function.
    arguments: Mapping[str, Any] = field(default_factory=dict)


BEST_PEER = "the best peer"


def rate(bound: float, of: str) -> Goal:
    """At least so many times as fast."""
    return Goal("rate", bound, of)


def reading(bounds: Mapping[str, float]) -> dict[str, tuple[Goal, ...]]:
    """Goals against the native floor, and ahead of everyone else."""
    return {name: (rate(bound, "native"), rate(1.0, BEST_PEER)) for name, bound in bounds.items()}


#: Writing to a memmap is what the plain writer does, and then some; it is no peer there.
WRITERS = ("ours", "0.4.8", "plain writer", *(peer for peer in PEERS if peer != "memmap"))
READERS = ("ours", "0.4.8", "native", *PEERS)

LINES = (
    Line(
        "write",
        "write",
        {
            name: (rate(bound, "plain writer"), rate(1.0, BEST_PEER))
            for name, bound in {"A": 0.70, "B": 0.94, "C": 0.75, "E": 0.80}.items()
        }
        | {"T": (rate(1.0, "plain writer"),)},
        WRITERS,
    ),
    Line("in order", "in_order", reading({"A": 1.0, "B": 1.0, "C": 0.95, "E": 0.95}), (*READERS, "memcpy")),
    Line("shuffled", "shuffled", reading({"A": 1.1, "B": 1.1, "C": 0.95, "E": 0.95}), (*READERS, "memcpy")),
    Line(
        "weighted",
        "weighted",
        reading({"A": 1.1, "B": 1.1, "C": 0.95, "E": 0.95}),
        ("ours", "0.4.8", "native", "lmdb", "lance", "memmap"),
    ),
    Line(
        "get_item",
        "get_item",
        {name: (rate(bound, "native"),) for name, bound in {"A": 0.75, "B": 0.75, "C": 0.92, "E": 0.85}.items()},
        READERS,
    ),
)
