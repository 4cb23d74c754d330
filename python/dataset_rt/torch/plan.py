"""Who gets what: budgets, batches, populations and seeds of every consumer, as arithmetic over plain integers.

A loader gives `samples` to `world_size` ranks. Each rank reads its budget through its loading workers, or itself if it
has none; either way the readers are called consumers here. A consumer owns a span of row positions, its population,
and takes `quota` samples from it in each pass, going on where the pass before ended.

Nothing in this module knows torch, files or time. The same numbers are computed by every rank and every worker.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

Partition: TypeAlias = Literal["split", "replicate"]

_WORD = 2**64
# Consumers of one rank are numbered within this range, so that rank and worker make one number.
_RANK_STRIDE = 2**32
_GOLDEN_RATIO = 0x9E3779B97F4A7C15
_CONSUMER_DOMAIN = 0x636F6E73756D6572
_ORDER_DOMAIN = 0x726F776F72646572


def rank_budget(samples: int, world_size: int, batch_size: int, *, drop_last: bool) -> int:
    """Samples that each rank takes in one pass: the same number on every rank, so that all make equally many steps."""
    if drop_last:
        return batch_size * (samples // (world_size * batch_size))
    return -(-samples // world_size)


def batch_count(budget: int, batch_size: int) -> int:
    """Batches that `budget` samples make, the last one possibly incomplete."""
    return -(-budget // batch_size)


def worker_quota(budget: int, batch_size: int, consumers: int, consumer: int) -> int:
    """Samples that one of the consumers of a rank takes in one pass.

    Whole batches are dealt out in turn, and the incomplete one goes to the last consumer that has anything: so it is
    also the last batch that torch, which asks its workers in turn, hands out.
    """
    whole, tail = divmod(budget, batch_size)
    quota = batch_size * (whole // consumers + (consumer < whole % consumers))
    if consumer == min(whole, consumers - 1):
        quota += tail
    return quota


def quota_before(budget: int, batch_size: int, consumers: int, consumer: int) -> int:
    """Samples that the consumers before this one take together."""
    whole, tail = divmod(budget, batch_size)
    before = batch_size * (consumer * (whole // consumers) + min(consumer, whole % consumers))
    if consumer > min(whole, consumers - 1):
        before += tail
    return before


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive row positions, `stop` excluded."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def share(self, number: int, shares: int, taken_before: int, taken: int, taken_by_all: int) -> "Span":
        """The rows of share `number` of `shares`, in proportion to what it takes of them in a pass: at least one.

        Shares that follow each other get rows that follow each other, without gap or overlap, and none gets more rows
        than it takes unless all do. Only where there are more shares than rows, some get the same row.
        """
        rows = len(self)
        if rows < shares:
            first = number * rows // shares
            return Span(self.start + first, self.start + first + 1)

        def begin(number: int, taken_before: int) -> int:
            if rows > taken_by_all:
                return -(-taken_before * rows // taken_by_all)
            # A row for each, and the others in proportion to what is taken beyond it, which may be nothing.
            beyond = max(1, taken_by_all - shares)
            return number - (-(taken_before - number) * (rows - shares) // beyond)

        return Span(self.start + begin(number, taken_before), self.start + begin(number + 1, taken_before + taken))


NO_ROWS = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Consumer:
    """What one reader does: take `quota` samples in a pass, from the rows of `population`, in `batch_size` portions.

    A `seed` means weighted draws with replacement, `None` reading in order.
    """

    rank: int
    worker: int
    quota: int
    population: Span
    seed: int | None
    batch_size: int

    def batch_sizes(self) -> Iterator[int]:
        """Sizes of the batches of one pass."""
        whole, tail = divmod(self.quota, self.batch_size)
        yield from (self.batch_size for _ in range(whole))
        if tail:
            yield tail

    def window(self, completed_passes: int) -> int:
        """Where in its stream the consumer begins after so many passes, finished or abandoned."""
        return completed_passes * self.quota


@dataclass(frozen=True, slots=True)
class Plan:
    """How one loader divides its samples and rows. Equal on all ranks, whatever number of workers each of them has."""

    samples: int
    rows: int
    world_size: int
    batch_size: int
    drop_last: bool
    partition: Partition
    seed: int | None

    @property
    def budget(self) -> int:
        """Samples of each rank in one pass."""
        return rank_budget(self.samples, self.world_size, self.batch_size, drop_last=self.drop_last)

    @property
    def batches(self) -> int:
        """Batches of each rank in one pass: the length of its loader."""
        return batch_count(self.budget, self.batch_size)

    @property
    def effective_samples(self) -> int:
        """Samples of all ranks together; more than asked for if padded, fewer if the rest is discarded."""
        return self.budget * self.world_size

    @property
    def declared_batch_size(self) -> int:
        """The batch size that torch is told. Torch allocates as much beforehand: no more than there can be."""
        return max(1, min(self.batch_size, self.budget))

    def reordered(self, consumers: int) -> bool:
        """Whether positions count rows of the common seeded order, and not of the table.

        A single consumer has every row in either case; it keeps table order, as the dataset itself would.
        """
        return self.partition == "split" and self.seed is not None and (self.world_size > 1 or consumers > 1)

    def rank_span(self, rank: int) -> Span:
        """Row positions that the consumers of a rank share, if they take anything."""
        if self.partition == "replicate":
            return Span(0, self.rows)
        return Span(0, self.rows).share(rank, self.world_size, rank, 1, self.world_size)

    def consumer(self, rank: int, worker: int, consumers: int) -> Consumer:
        """What worker `worker` of the `consumers` of a rank does; a rank without workers is one consumer."""
        budget, batch_size = self.budget, self.batch_size
        quota = worker_quota(budget, batch_size, consumers, worker)
        if quota == 0:
            population = NO_ROWS
        elif self.partition == "replicate":
            population = Span(0, self.rows)
        else:
            active = min(consumers, self.batches)
            before = quota_before(budget, batch_size, consumers, worker)
            population = self.rank_span(rank).share(worker, active, before, quota, budget)
        seed = None if self.seed is None else consumer_seed(self.seed, rank, worker)
        return Consumer(rank, worker, quota, population, seed, batch_size)

    def consumers(self, rank: int, consumers: int) -> list[Consumer]:
        """Every consumer of a rank."""
        return [self.consumer(rank, worker, consumers) for worker in range(consumers)]

    def populations(self, rank: int, consumers: int) -> list[Span]:
        """The different populations of the consumers of a rank that take anything."""
        return list(dict.fromkeys(each.population for each in self.consumers(rank, consumers) if each.quota))


def mix(word: int) -> int:
    """Scatter the bits of a 64-bit word; different words stay different.

    The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
    """
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % _WORD
    return word ^ (word >> 31)


def consumer_seed(seed: int, rank: int, worker: int) -> int:
    """The sampling seed of one consumer. No two consumers of a loader can have the same one."""
    number = rank * _RANK_STRIDE + worker
    return mix((mix(seed ^ _CONSUMER_DOMAIN) + _GOLDEN_RATIO * (number + 1)) % _WORD)


def order_seed(seed: int) -> int:
    """The seed of the common row order of a shuffled split."""
    return mix(seed ^ _ORDER_DOMAIN)
