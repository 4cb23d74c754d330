"""What follows from a plan, spelled out: the rows and batches that loaders must give."""

from collections.abc import Iterator

from dataset_rt.torch.plan import Consumer, Plan, mix


def ordered_positions(consumer: Consumer, completed_passes: int) -> Iterator[int]:
    """Row positions that the next pass reads in order. Which rows a seeded consumer draws is not decided here."""
    start, rows = consumer.population.start, len(consumer.population)
    window = consumer.window(completed_passes)
    return (start + position % rows for position in range(window, window + consumer.quota))


def deliveries(plan: Plan, rank: int, consumers: int) -> Iterator[tuple[int, int]]:
    """Worker and size of every batch of a pass, in the order in which torch hands them out."""
    waiting = [(each.worker, each.batch_sizes()) for each in plan.consumers(rank, consumers)]
    while waiting:
        asked, waiting = waiting, []
        for worker, sizes in asked:
            size = next(sizes, None)
            if size is not None:
                yield worker, size
                waiting.append((worker, sizes))


def order_key(seed: int, row: int) -> int:
    """What the rows of a shuffled split are sorted by, `seed` being an `order_seed`. No two rows have the same key."""
    return mix(mix((seed + 0x9E3779B97F4A7C15 * row) % 2**64) ^ seed)
