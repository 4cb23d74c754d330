"""The lines of the comparison: what is measured on which sets, who takes part, and what the goal is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from compare.candidates import PEERS


@dataclass(frozen=True)
class Goal:
    """What ours must reach, against another candidate or `the best peer` in the same run, or alone.

    `rate`: at least `bound` times as fast. `cpu`: the same by processor time of all threads. `time`: at most `bound` times as long, or as much. `value`: at most `bound`.
    """

    kind: Literal["rate", "cpu", "time", "value"]
    bound: float
    of: str = ""


@dataclass(frozen=True)
class Line:
    """One measure, on one or more sets."""

    name: str
    #: A function of `compare.measures`, with its module.
    measure: str
    #: The sets, and the goals on each.
    goals: Mapping[str, tuple[Goal, ...]]
    candidates: tuple[str, ...]
    #: Seconds, bytes, or a plain number.
    unit: Literal["s", "B", ""] = "s"
    place: Literal["memory", "disk"] = "memory"
    #: Further arguments of the function.
    arguments: Mapping[str, Any] = field(default_factory=dict)
    #: Whether everything is measured at once, and not as many samples as fit into the time.
    whole: bool = False
    #: Whether each measurement has a process of its own.
    own_process: bool = False
    #: At most so many rounds.
    rounds: int = 1000
    #: A further set that the measure needs.
    beside: str | None = None

    @property
    def opens(self) -> bool:
        """Whether candidates hold the set open; otherwise the measure itself opens what it needs."""
        return self.measure.startswith("reading.")

    @property
    def writes(self) -> bool:
        """Whether candidates write the set beforehand; otherwise the measure itself writes, or needs no samples."""
        return self.measure not in ("writing.write", "writing.peak", "importing.import_time")


BEST_PEER = "the best peer"
ONE_THREAD = "ours, 1 thread"
MIB = float(1 << 20)


def rate(bound: float, of: str) -> Goal:
    """At least so many times as fast."""
    return Goal("rate", bound, of)


def time(bound: float, of: str) -> Goal:
    """At most so many times as long, or as much."""
    return Goal("time", bound, of)


def most(bound: float) -> Goal:
    """At most so much."""
    return Goal("value", bound)


def goals(of: str, ahead_of_peers: bool = True, **bounds: float) -> dict[str, tuple[Goal, ...]]:
    """A rate for each set, and ahead of every peer."""
    ahead = (rate(1.0, BEST_PEER),) if ahead_of_peers else ()
    return {name.replace("_", " "): (rate(bound, of), *ahead) for name, bound in bounds.items()}


def drawing(**bounds: float) -> dict[str, tuple[Goal, ...]]:
    """Against the native floor by the clock and by processor time, and ahead of every peer."""
    found = goals("native", **bounds)
    return {name: (clock, Goal("cpu", clock.bound, clock.of), ahead) for name, (clock, ahead) in found.items()}


def memory(
    name: str,
    measure: str,
    wanted: Mapping[str, tuple[Goal, ...]],
    candidates: tuple[str, ...] = ("ours",),
    rounds: int = 2,
    **arguments: Any,
) -> Line:
    """Bytes, each time in a process of its own: what others left behind would count too."""
    return Line(
        name, measure, wanted, candidates, "B", whole=True, own_process=True, rounds=rounds, arguments=arguments
    )


#: Writing to a memmap is what the plain writer does, and then some; it is no peer there.
WRITERS = ("ours", "0.4.8", "plain writer", *(peer for peer in PEERS if peer != "memmap"))
SYNCING_WRITERS = ("ours", "plain writer", "lmdb", "h5py")
READERS = ("ours", "0.4.8", "native", *PEERS)
DRAWERS = ("ours", "0.4.8", "native", "lmdb", "lance", "memmap")
LOADERS = ("ours", "ready lists", "lmdb", "litdata", "HF datasets", "memmap")
COLD_READERS = ("ours", "disk", "lmdb", "memmap")

#: Two measurements of the same thing differ by so much.
AS_FAST = 0.97

WARM = (
    Line("write", "writing.write", goals("plain writer", A=0.70, B=0.94, C=0.75, E=0.80), WRITERS),
    Line("write, LZ4", "writing.write", goals("plain writer", False, T=1.0), ("ours", "0.4.8", "plain writer")),
    Line("in order", "reading.in_order", goals("native", A=1.0, B=1.0, C=0.95, E=0.95), (*READERS, "memcpy")),
    Line("shuffled", "reading.shuffled", drawing(A=1.1, B=1.1, C=0.95, E=0.95), (*READERS, "memcpy")),
    Line("weighted", "reading.weighted", drawing(A=1.1, B=1.1, C=0.95, E=0.95), DRAWERS),
    Line("get_item", "reading.get_item", goals("native", A=0.75, B=0.75, C=0.92, E=0.85), READERS),
    Line(
        "shuffled, 2 threads over 1",
        "reading.shuffled",
        goals(ONE_THREAD, False, A=AS_FAST, B=AS_FAST, C=1.6, E=AS_FAST, T=1.6),
        ("ours", ONE_THREAD),
    ),
    Line(
        "write, 2 threads over 1",
        "writing.write",
        goals(ONE_THREAD, False, A=AS_FAST, B=AS_FAST, C=1.6, E=AS_FAST, T=1.6),
        ("ours", ONE_THREAD),
    ),
    memory("memory while shuffled", "memory_use.iterating", {"B": (most(12 * MIB),)}, ("ours", "0.4.8")),
    Line(
        "validate_cache", "opening.validated", goals("blake3", False, C=0.93), ("ours", "0.4.8", "blake3"), whole=True
    ),
)

LOADING = (
    *(
        Line(
            f"DataLoader, {workers} workers",
            "loading.whole_pass",
            wanted,
            LOADERS,
            whole=True,
            arguments={"workers": workers},
        )
        for workers, wanted in (
            (0, {"B": (rate(1.85, BEST_PEER),), "C": (rate(1.1, BEST_PEER),)}),
            (
                2,
                {
                    "B": (rate(0.83, "ready lists"), rate(1.0, BEST_PEER)),
                    "C": (rate(1.07, "memmap"), rate(1.0, BEST_PEER)),
                },
            ),
        )
    ),
    Line(
        "DataLoader, first batch of a pass",
        "loading.first_batch",
        {"B": (time(2.4, "memmap"),), "C": (time(2.4, "memmap"),)},
        LOADERS,
        whole=True,
        arguments={"workers": 2},
    ),
    memory(
        "DataLoader, private memory of a worker",
        "loading.worker_memory",
        {"B": (time(1.1, "torch alone"),)},
        ("ours", "torch alone"),
        rounds=1,
        workers=2,
    ),
)

MANY_ROWS = (
    memory("write: peak of memory", "writing.peak", {"F": (most(64 * MIB),)}, rounds=1),
    Line(
        "write: bytes on disk beside a payload",
        "writing.beside",
        {"F": (most(110),)},
        ("ours", "memmap"),
        "B",
        whole=True,
        rounds=1,
    ),
    Line(
        "open to first sample in order",
        "opening.first",
        {"F": (rate(1.0, "memmap"),)},
        ("ours", "memmap"),
        whole=True,
        arguments={"shuffled": False},
    ),
    Line(
        "open to first sample shuffled",
        "opening.first",
        {"F": (time(0.35, "one pass"),)},
        ("ours", "one pass", "memmap"),
        whole=True,
        arguments={"shuffled": True},
    ),
    Line(
        "new weights to first draw",
        "opening.new_weights",
        {"F": (time(2.5, "one pass"),)},
        ("ours", "one pass"),
        whole=True,
    ),
    memory("new weights: memory kept for a row", "memory_use.new_weights_kept", {"F": (most(40),)}),
    memory("new weights: peak of memory for a row", "memory_use.new_weights_peak", {"F": (most(50),)}),
    memory("memory while shuffled, for a row", "memory_use.iterating", {"F": (most(17),)}, in_rows=True),
    Line(
        "shuffled, beside 10^4 rows",
        "reading.growth",
        {"F": (time(1 / AS_FAST, "native"),)},
        ("ours", "native", "memmap"),
        "",
        whole=True,
        beside="F small",
    ),
)

DISK = (
    Line(
        "write to disk, synced",
        "writing.write",
        goals("plain writer", B=0.94, C=0.85),
        SYNCING_WRITERS,
        whole=True,
        place="disk",
        arguments={"synced": True},
    ),
    *(
        Line(
            f"cold, {'shuffled' if shuffled else 'in order'}",
            "opening.cold",
            wanted,
            COLD_READERS,
            place="disk",
            whole=True,
            arguments={"shuffled": shuffled},
        )
        for shuffled, wanted in (
            (False, goals("disk", B_cold=0.9, C_cold=0.9)),
            (True, goals("disk", B_cold=0.8, C_cold=0.9)),
        )
    ),
)

OTHER = (
    Line(
        "import",
        "importing.import_time",
        {"-": (time(1.3, "pydantic"),)},
        ("ours", "0.4.8", "pydantic"),
        whole=True,
    ),
)

LINES = (*WARM, *LOADING, *MANY_ROWS, *DISK, *OTHER)
