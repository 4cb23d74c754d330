"""Loaders of PyTorch. Workers live on from pass to pass."""

from pathlib import Path
from typing import Any

import batches
from memory import mapped

from compare.candidates.candidate import BATCH
from compare.held import Held
from compare.measures.timing import Figures, timed


def loader_of(held: Held, workers: int, context: str) -> Any:
    """The loader, which has made a pass already."""
    key = f"{workers} {context}"
    if key not in held.loaders:
        held.loaders[key] = held.candidate.loader(held.data, pass_length(held), workers, context)
        for _ in held.loaders[key]:
            pass
    return held.loaders[key]


def pass_length(held: Held) -> int:
    """Samples of a pass."""
    return min(held.count, max(held.candidate.samples.batch // 4, 1000))


def whole_pass(held: Held, count: int, seed: int, *, workers: int) -> Figures:
    """Seconds for each sample; the processor time of workers is not in it."""
    loader, lengths = loader_of(held, workers, "fork"), []

    def work() -> None:
        lengths.extend(map(len, loader))

    found = timed(work)
    samples = sum(lengths)
    if not 0 <= samples - pass_length(held) < 2 * BATCH:
        raise SystemExit(f"a pass gave {samples} samples, not {pass_length(held)}")
    return {name: figure / samples for name, figure in found.items()}


def first_batch(held: Held, count: int, seed: int, *, workers: int) -> Figures:
    """Seconds from the beginning of a pass to its first batch."""
    return {"value": batches.first_batch(loader_of(held, workers, "fork"))}


def worker_memory(held: Held, count: int, seed: int, *, workers: int) -> Figures:
    """Bytes that the largest of the spawned workers shares with nobody, after a pass."""
    loader_of(held, workers, "spawn")
    return {"value": max(mapped(process, "Private_Clean", "Private_Dirty") for process in descendants())}


def descendants() -> list[str]:
    """Processes that this one started."""
    return [pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
