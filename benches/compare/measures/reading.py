"""Reading what is in memory already. Figures are of one sample."""

import random

from compare.held import Held
from compare.measures.timing import Figures, consume, timed


def in_order(held: Held, count: int, seed: int) -> Figures:
    """Samples one after the other, from some row on."""
    samples = held.candidate.in_order(random.Random(seed).randrange(held.count - count + 1), count)
    return timed(lambda: consume(samples), count)


def shuffled(held: Held, count: int, seed: int) -> Figures:
    """Samples in an order that is known, drawn with replacement."""
    samples = held.candidate.shuffled(held.rows(count, seed))
    return timed(lambda: consume(samples), count)


def weighted(held: Held, count: int, seed: int) -> Figures:
    """The same, drawn by weight."""
    rows = random.Random(seed).choices(range(held.count), cum_weights=held.weight_sums, k=count)
    samples = held.candidate.weighted(rows)
    return timed(lambda: consume(samples), count)


def get_item(held: Held, count: int, seed: int) -> Figures:
    """Samples one by one, where nobody knows which one is next."""
    get, rows = held.candidate.get_item, held.rows(count, seed)

    def work() -> None:
        for row in rows:
            get(row)

    return timed(work, count)


def growth(held: Held, count: int, seed: int, small: str) -> Figures:
    """How many times as long a shuffled sample takes as one of the small set."""
    few = [shuffled(held.beside[small], count, seed + turn)["value"] for turn in range(3)]
    many = [shuffled(held, count, seed + turn)["value"] for turn in range(3)]
    return {"value": sorted(many)[1] / sorted(few)[1]}
