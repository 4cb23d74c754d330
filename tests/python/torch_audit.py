"""Who read what: every visit of real runs, gathered through the public API, and what the plan declares for it."""

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from plan_reference import deliveries, order_key, ordered_positions
from support import opened
from torch_ranks import open_caches
from torch_support import Identity, identities, loader, tagged

import dataset_rt as drt
from dataset_rt.torch import plan as planning
from dataset_rt.torch.plan import Consumer, Partition, Plan

TABLES = {
    "full": lambda frame: frame,
    "filtered": lambda frame: frame[[0, 10]],
    "duplicated": lambda frame: frame[[5, 5, 0, 9, 3, 3, 3]],
    "weighted": lambda frame: frame.reverse().with_columns(weight=pl.col("number") + 0.5),
    "single": lambda frame: frame[[4]],
}


@dataclass(frozen=True, slots=True)
class Case:
    """One loader on all ranks, read for several passes. Without a `seed` it reads in order."""

    table: str
    samples: int
    batch_size: int
    drop_last: bool
    partition: Partition
    seed: int | None
    workers: int = 0
    method: str = "spawn"
    passes: int = 3

    def arguments(self) -> dict[str, Any]:
        given: dict[str, Any] = {
            "samples_per_epoch": self.samples,
            "batch_size": self.batch_size,
            "drop_last": self.drop_last,
            "worker_partition": self.partition,
            "shuffle": self.seed is not None,
            "num_workers": self.workers,
            "multiprocessing_context": self.method,
        }
        return given if self.seed is None else given | {"seed": self.seed}


class Visit(NamedTuple):
    """One sample that came out of a loader; `position` counts what its consumer gave in this pass."""

    rank: int
    worker: int
    completed: int
    position: int
    cache_id: int
    sample_id: int


def gather(
    rank: int, paths: list[Path], cases: list[Case]
) -> list[tuple[int, list[list[tuple[int, int]]], list[Visit]]]:
    """Read every case on one rank: the length of its loader, worker and size of the batches of each pass, and all visits."""
    gathered = []
    for case in cases:
        dataset = open_caches(paths)
        dataset.update_metadata(TABLES[case.table](dataset.get_metadata()))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*do not divide evenly")
            built = loader(dataset, collate_fn=tagged, **case.arguments())
        batches, visits = [], []
        for completed in range(case.passes):
            positions: Counter[int] = Counter()
            batches.append([])
            for worker, batch in built:
                batches[-1].append((worker, len(batch)))
                for cache_id, sample_id in batch:
                    visits.append(Visit(rank, worker, completed, positions[worker], cache_id, sample_id))
                    positions[worker] += 1
        gathered.append((len(built), batches, visits))
    return gathered


class Audit:
    """Compares what all ranks gathered for one case with its plan, visit by visit, and with the promises in plain words."""

    def __init__(self, case: Case, ranks: int, paths: list[Path], runtime: drt.DatasetRuntime) -> None:
        self.case = case
        self.paths = paths
        self.runtime = runtime
        frame = opened(runtime, paths).get_metadata()
        self.frame = TABLES[case.table](frame)
        self.table = list(zip(self.frame["cache_id"].to_list(), self.frame["sample_id"].to_list(), strict=True))
        self.plan = Plan(
            case.samples, len(self.table), ranks, case.batch_size, case.drop_last, case.partition, case.seed
        )
        self.consumers = [each for rank in range(ranks) for each in self.plan.consumers(rank, max(1, case.workers))]

    def check(self, gathered: list[tuple[int, list[list[tuple[int, int]]], list[Visit]]]) -> None:
        """Check what each rank gathered."""
        for rank, (length, batches, _) in enumerate(gathered):
            assert length == self.plan.batches, self.case
            assert batches == [list(deliveries(self.plan, rank, max(1, self.case.workers)))] * self.case.passes, (
                self.case
            )
        visits = [visit for _, _, visits in gathered for visit in visits]
        assert sorted(visits) == sorted(self.declared()), self.case
        self._check_promises(visits)

    def declared(self) -> Iterator[Visit]:
        """Every visit that there should be."""
        for consumer in self.consumers:
            streams = self._ordered(consumer) if consumer.seed is None else self._drawn(consumer)
            for completed, samples in enumerate(islice(streams, self.case.passes)):
                for position, (cache_id, sample_id) in enumerate(samples):
                    yield Visit(consumer.rank, consumer.worker, completed, position, cache_id, sample_id)

    def _ordered(self, consumer: Consumer) -> Iterator[list[Identity]]:
        for completed in range(self.case.passes):
            yield [self.table[row] for row in ordered_positions(consumer, completed)]

    def _drawn(self, consumer: Consumer) -> Iterator[list[Identity]]:
        """What a plain dataset over the rows of the consumer gives, with the seed of the consumer."""
        if not consumer.quota:
            return
        rows = list(range(self.plan.rows))
        if self.plan.reordered(max(1, self.case.workers)):
            seed = planning.order_seed(self.plan.seed or 0)
            rows.sort(key=lambda row: order_key(seed, row))
        dataset = opened(self.runtime, self.paths, seed=consumer.seed, shuffle=True)
        dataset.update_metadata(self.frame[rows[consumer.population.start : consumer.population.stop]])
        dataset.set_epoch_len(consumer.quota)
        for _ in range(self.case.passes):
            yield identities(dataset)

    def _check_promises(self, visits: list[Visit]) -> None:
        """What the contract says of multiplicities, computed from the case alone."""
        case, ranks = self.case, self.plan.world_size
        active = {(visit.rank, visit.worker) for visit in visits}
        passes = [multiplicities(visit for visit in visits if visit.completed == each) for each in range(case.passes)]
        if case.drop_last:
            total = ranks * case.batch_size * (case.samples // (ranks * case.batch_size))
        else:
            total = ranks * -(-case.samples // ranks)
        assert [each.total() for each in passes] == [total] * case.passes, case
        rows = Counter(self.table)
        assert all(each.keys() <= rows.keys() for each in passes), case
        if case.partition == "split" and case.seed is None and total >= len(self.table) == case.samples:
            # A full pass: every row as often as it is in the table, and nothing else but padding.
            assert all(each >= rows and (each - rows).total() == total - case.samples < ranks for each in passes), case
        if case.seed is None and len(active) == 1:
            # One consumer has all rows, and goes round and round.
            cycle = [self.table[place % len(self.table)] for place in range(total * case.passes)]
            assert [visit[4:] for visit in sorted(visits)] == cycle, case
        if case.seed is None and case.partition == "replicate":
            first = {self.table[0]} if total else set()
            assert {visit[4:] for visit in visits if visit.completed == visit.position == 0} == first, case
        if case.partition == "split" and len(rows) == len(self.table) >= ranks * max(1, case.workers):
            # Enough rows for all, each of them once in the table: nobody reads what another one owns.
            owners = {(visit.rank, visit.worker, *visit[4:]) for visit in visits}
            assert len(owners) == len({owner[2:] for owner in owners}), case


def multiplicities(visits: Iterable[Visit]) -> Counter[Identity]:
    """How often each sample was read."""
    return Counter((visit.cache_id, visit.sample_id) for visit in visits)
