"""Who gets what: every small case against a model that deals batches and rows out one by one, large ones by property."""

from collections import Counter
from itertools import pairwise, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_reference import deliveries, order_key, ordered_positions

from dataset_rt.torch import plan as planning
from dataset_rt.torch.plan import Plan, Span


def small_plans(drop_last: bool, partition: planning.Partition, shuffle: bool, row_counts=range(1, 8)):
    for samples, rows, world_size, batch_size in product(range(1, 9), row_counts, range(1, 4), range(1, 5)):
        seed = 7 if shuffle else None
        yield Plan(samples, rows, world_size, batch_size, drop_last, partition, seed)


every_policy = pytest.mark.parametrize(
    ("drop_last", "partition", "shuffle"), list(product([False, True], ["split", "replicate"], [False, True]))
)


def dealt(plan: Plan, consumers: int) -> list[tuple[int, int]]:
    """(worker, batch size) of one rank's pass, found by taking samples away one batch at a time."""
    if plan.drop_last:
        budget = 0
        while (budget + plan.batch_size) * plan.world_size <= plan.samples:
            budget += plan.batch_size
    else:
        budget = 0
        while budget * plan.world_size < plan.samples:
            budget += 1
    batches = []
    while budget:
        size = min(plan.batch_size, budget)
        whole = size == plan.batch_size
        # A worker that has nothing more is passed over: the rest goes to the last one that can come next.
        worker = len(batches) % consumers if whole else min(len(batches), consumers - 1)
        batches.append((worker, size))
        budget -= size
    return batches


@every_policy
def test_f03_every_small_loader_deals_batches_like_the_model(drop_last, partition, shuffle):
    for plan in small_plans(drop_last, partition, shuffle, row_counts=[1, 5]):
        for consumers in range(1, 5):
            batches = dealt(plan, consumers)
            case = (plan, consumers)
            assert plan.batches == len(batches), case
            assert plan.budget == sum(size for _, size in batches), case
            quotas = Counter()
            for worker, size in batches:
                quotas[worker] += size
            for rank in range(plan.world_size):
                each = plan.consumers(rank, consumers)
                assert [consumer.quota for consumer in each] == [quotas[worker] for worker in range(consumers)], case
                assert [(consumer.rank, consumer.worker) for consumer in each] == [
                    (rank, worker) for worker in range(consumers)
                ], case
                delivered = list(deliveries(plan, rank, consumers))
                assert sorted(delivered) == sorted(batches), case
                assert [size for _, size in delivered] == [size for _, size in batches], case
                for consumer in each:
                    assert list(consumer.batch_sizes()) == [s for w, s in batches if w == consumer.worker], case


@every_policy
def test_f03_the_published_examples_hold(drop_last, partition, shuffle):
    seed = 1 if shuffle else None
    one = Plan(10, 10, 1, 3, drop_last, partition, seed)
    three = Plan(1000, 1000, 3, 32, drop_last, partition, seed)
    assert (one.budget, one.batches) == ((9, 3) if drop_last else (10, 4))
    assert (three.budget, three.batches) == ((320, 10) if drop_last else (334, 11))
    assert three.effective_samples == (960 if drop_last else 1002)


@every_policy
def test_f03_populations_are_contiguous_and_own_every_row(drop_last, partition, shuffle):
    for plan in small_plans(drop_last, partition, shuffle):
        for consumers in range(1, 5):
            case = (plan, consumers)
            active = [
                consumer
                for rank in range(plan.world_size)
                for consumer in plan.consumers(rank, consumers)
                if consumer.quota
            ]
            idle = [
                consumer
                for rank in range(plan.world_size)
                for consumer in plan.consumers(rank, consumers)
                if not consumer.quota
            ]
            assert all(len(consumer.population) == 0 for consumer in idle), case
            spans = [range(consumer.population.start, consumer.population.stop) for consumer in active]
            if partition == "replicate" or len(active) == 1:
                assert all(span == range(plan.rows) for span in spans), case
                continue
            if not active:
                continue
            owned = [row for span in spans for row in span]
            assert sorted(set(owned)) == list(range(plan.rows)), case
            assert owned == sorted(owned), case
            assert all(len(span) > 0 for span in spans), case
            active_of_rank = Counter(consumer.rank for consumer in active)
            if all(len(plan.rank_span(rank)) >= active_of_rank[rank] for rank in range(plan.world_size)):
                assert len(owned) == plan.rows or plan.rows < plan.world_size, case
            # Nobody owns rows that a pass does not reach while it reaches rows of another one twice.
            for consumer in active:
                reached = len(plan.rank_span(consumer.rank)) <= plan.budget
                assert (len(consumer.population) <= consumer.quota) >= reached, case
                assert (len(consumer.population) >= consumer.quota) >= (not reached), case


def test_f03_a_full_pass_of_a_split_reads_every_row_once_apart_from_padding():
    for rows, world_size, batch_size in product(range(1, 13), range(1, 5), range(1, 5)):
        plan = Plan(rows, rows, world_size, batch_size, False, "split", None)
        for consumers, completed in product(range(1, 5), range(3)):
            seen = Counter(
                row
                for rank in range(world_size)
                for consumer in plan.consumers(rank, consumers)
                for row in ordered_positions(consumer, completed)
            )
            case = (plan, consumers, completed)
            assert set(seen) == set(range(rows)), case
            assert seen.total() - rows == plan.effective_samples - rows < world_size, case


def test_f05_a_split_that_drops_samples_reaches_every_row_within_a_few_passes():
    for rows, world_size, batch_size, consumers in product(range(1, 13), range(1, 4), range(1, 5), range(1, 4)):
        plan = Plan(rows, rows, world_size, batch_size, True, "split", None)
        everyone = [each for rank in range(world_size) for each in plan.consumers(rank, consumers) if each.quota]
        if not everyone:
            assert rows < world_size * batch_size
            continue
        passes = max(-(-len(each.population) // each.quota) for each in everyone)
        assert passes <= max(2, batch_size * world_size)
        seen = {row for each in everyone for completed in range(passes) for row in ordered_positions(each, completed)}
        assert seen == set(range(rows)), (plan, consumers)


def test_f03_ordered_windows_continue_cyclically():
    [consumer] = Plan(2, 5, 1, 2, False, "split", None).consumers(0, 1)
    assert [list(ordered_positions(consumer, completed)) for completed in range(3)] == [[0, 1], [2, 3], [4, 0]]
    assert [consumer.window(completed) for completed in range(3)] == [0, 2, 4]


def test_f03_only_a_shuffled_split_of_several_consumers_has_an_order_of_its_own():
    def reordered(world_size: int, consumers: int, partition: planning.Partition, seed: int | None) -> bool:
        return Plan(9, 9, world_size, 2, False, partition, seed).reordered(consumers)

    assert reordered(1, 2, "split", 0)
    assert reordered(2, 1, "split", 0)
    assert not reordered(1, 1, "split", 0)
    assert not reordered(2, 2, "split", None)
    assert not reordered(2, 2, "replicate", 0)


def test_f03_torch_is_never_told_more_than_there_is():
    assert Plan(10, 10, 1, 2**40, False, "split", None).declared_batch_size == 10
    assert Plan(10, 10, 1, 2**40, True, "split", None).declared_batch_size == 1
    assert Plan(10, 10, 1, 4, False, "split", None).declared_batch_size == 4


sizes = st.integers(1, 2**53)


@settings(max_examples=300, deadline=None)
@given(
    samples=sizes,
    rows=st.integers(1, 2**40),
    world_size=st.integers(1, 5000),
    batch_size=st.integers(1, 2**62),
    drop_last=st.booleans(),
    consumers=st.integers(1, 64),
    data=st.data(),
)
def test_f03_large_loaders_add_up(samples, rows, world_size, batch_size, drop_last, consumers, data):
    plan = Plan(samples, rows, world_size, batch_size, drop_last, "split", None)
    rank = data.draw(st.integers(0, world_size - 1))
    each = plan.consumers(rank, consumers)
    assert sum(consumer.quota for consumer in each) == plan.budget
    assert sum(-(-consumer.quota // batch_size) for consumer in each) == plan.batches
    if drop_last:
        assert 0 <= samples - plan.effective_samples < world_size * batch_size
        assert all(consumer.quota % batch_size == 0 for consumer in each)
    else:
        assert 0 <= plan.effective_samples - samples < world_size
    active = [consumer for consumer in each if consumer.quota]
    loads = [-(-consumer.quota // batch_size) for consumer in each]
    assert max(loads) - min(loads) <= 1
    rank_span = plan.rank_span(rank)
    if active:
        assert active[0].population.start == rank_span.start
        assert active[-1].population.stop == rank_span.stop
    if len(rank_span) >= len(active):
        assert all(a.population.stop == b.population.start for a, b in pairwise(active))
    if rank + 1 < world_size and plan.budget and rows >= world_size:
        assert rank_span.stop == plan.rank_span(rank + 1).start


@given(seed=st.integers(0, 2**64 - 1))
@settings(max_examples=200, deadline=None)
def test_f06_consumer_seeds_are_distinct_words(seed):
    seeds = [planning.consumer_seed(seed, rank, worker) for rank in range(16) for worker in range(16)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= each < 2**64 for each in seeds)
    assert seed not in seeds
    assert planning.order_seed(seed) not in seeds


def test_f06_consumer_seeds_are_well_mixed():
    # Neighbours in seed, rank and worker, and every single flipped bit of the seed, change about half of the bits.
    def flipped(a: int, b: int) -> int:
        return (a ^ b).bit_count()

    base = planning.consumer_seed(1234, 3, 2)
    neighbours = [planning.consumer_seed(1234 ^ (1 << bit), 3, 2) for bit in range(64)]
    neighbours += [planning.consumer_seed(1234, rank, 2) for rank in (2, 4, 3 + 2**20)]
    neighbours += [planning.consumer_seed(1234, 3, worker) for worker in (1, 3, 4)]
    distances = [flipped(base, other) for other in neighbours]
    assert all(12 <= distance <= 52 for distance in distances)
    assert 30 <= sum(distances) / len(distances) <= 34
    many = {planning.consumer_seed(s, r, w) for s in range(50) for r in range(20) for w in range(20)}
    assert len(many) == 50 * 20 * 20


def test_f06_seeds_are_pinned():
    # A change here changes what every shuffled loader yields.
    assert planning.consumer_seed(0, 0, 0) == 2892774589070220757
    assert planning.consumer_seed(2**64 - 1, 1, 3) == 15334192757921287309
    assert planning.order_seed(0) == 3481682662421483326
    assert [order_key(planning.order_seed(5), row) for row in range(2)] == [
        7544031930618563842,
        4505852109698872522,
    ]


def test_f03_the_common_order_is_a_permutation_without_pattern():
    seed = planning.order_seed(11)
    rows = 4096
    keys = [order_key(seed, row) for row in range(rows)]
    assert len(set(keys)) == rows
    order = sorted(range(rows), key=keys.__getitem__)
    # Serial correlation of a random permutation of n rows has a standard deviation of about 1 / sqrt(n).
    mean = (rows - 1) / 2
    variance = (rows * rows - 1) / 12
    correlation = sum((a - mean) * (b - mean) for a, b in pairwise(order)) / (rows * variance)
    assert abs(correlation) < 5 / rows**0.5
    identity = sum((place - mean) * (row - mean) for place, row in enumerate(order)) / (rows * variance)
    assert abs(identity) < 5 / rows**0.5
    other = planning.order_seed(12)
    assert sorted(range(rows), key=lambda row: order_key(other, row)) != order


def test_f03_shares_of_a_span_follow_each_other():
    for rows, takes in product(
        range(1, 9), [(1,), (1, 1), (2, 1), (4, 4, 1), (3, 3, 3), (6, 1), (1, 1, 1, 1, 1), (5, 5, 2)]
    ):
        shares = [
            Span(3, 3 + rows).share(number, len(takes), sum(takes[:number]), taken, sum(takes))
            for number, taken in enumerate(takes)
        ]
        covered = [row for share in shares for row in range(share.start, share.stop)]
        case = (rows, takes, shares)
        assert sorted(set(covered)) == list(range(3, 3 + rows)), case
        assert all(len(share) >= 1 for share in shares), case
        assert len(covered) == max(rows, len(takes)), case
        # As large as proportion says, apart from rounding, unless that is less than a row.
        assert all(
            abs(len(share) - rows * taken / sum(takes)) < 2 for share, taken in zip(shares, takes, strict=True)
        ), case
        if rows == sum(takes):
            assert [len(share) for share in shares] == list(takes)


def test_f10_the_tables_of_the_guide_are_those_of_the_plan():
    guide = (Path(__file__).parents[3] / "docs" / "guides" / "pytorch.md").read_text(encoding="utf-8")

    def cells(plan: Plan, rank: int, worker: int, passes: int) -> list[str]:
        consumer = plan.consumer(rank, worker, 2)
        span = consumer.population
        rows = f"{span.start}-{span.stop - 1}" if len(span) > 1 else f"{span.start}"
        return [rows, *(" ".join(map(str, ordered_positions(consumer, completed))) for completed in range(passes))]

    padded = [Plan(11, 11, 2, 2, False, partition, None) for partition in ("split", "replicate")]
    dropped = Plan(11, 11, 2, 2, True, "split", None)
    for rank, worker in product(range(2), range(2)):
        quota = padded[0].consumer(rank, worker, 2).quota
        both = [cell for plan in padded for cell in cells(plan, rank, worker, 2)]
        assert f"| {rank}, {worker} | {quota} | {' | '.join(both)} |\n" in guide
        quota = dropped.consumer(rank, worker, 2).quota
        assert f"| {rank}, {worker} | {quota} | {' | '.join(cells(dropped, rank, worker, 3))} |\n" in guide
