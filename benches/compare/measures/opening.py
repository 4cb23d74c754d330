"""Opening what was written, and reading it from the disk. Seconds for everything, but from the disk for each sample."""

from disk import evict

from compare.held import Held
from compare.measures.timing import Figures, consume, timed


def first(held: Held, count: int, seed: int, *, shuffled: bool) -> Figures:
    """From opening to the first sample."""
    return timed(
        lambda: next(iter(held.candidate.fresh(held.data, shuffled=shuffled, count=1, rows=held.rows(1, seed))))
    )


def new_weights(held: Held, count: int, seed: int) -> Figures:
    """From a new table of weights to the first sample drawn by them."""
    dataset = held.candidate.fresh_dataset(held.data)
    table = held.candidate.weighted_table(dataset)
    return timed(lambda: held.candidate.reweigh(dataset, table))


def validated(held: Held, count: int, seed: int) -> Figures:
    """Opening with all checksums verified."""
    return timed(lambda: held.candidate.validate(held.data), held.count)


def cold(held: Held, count: int, seed: int, *, shuffled: bool) -> Figures:
    """Opens and reads samples, of which nothing is in memory."""
    if shuffled:
        count = min(held.candidate.samples.batch, held.count // 8)
    rows = held.rows(count, seed) if shuffled else range(count)
    evict(held.data)
    return timed(lambda: consume(held.candidate.fresh(held.data, shuffled=shuffled, count=count, rows=rows)), count)
