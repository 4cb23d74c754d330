"""Process groups: equal steps on all ranks, the audit of who read which rows, and ranks that do not agree."""

import itertools
import os
import warnings
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("torch.distributed")

import torch_ranks
from support import numbered, write
from torch_ranks import open_caches, run_ranks
from torch_support import loader, recorded_events

import dataset_rt as drt
from dataset_rt.torch import agreement, resources
from dataset_rt.torch.plan import Plan


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    with drt.DatasetRuntime(num_workers=1) as runtime:
        return write(runtime, tmp_path_factory.mktemp("caches"), numbered("a", 7), numbered("b", 4))


def table_of(paths, rows):
    frame = open_caches(paths).get_metadata()
    if rows is not None:
        frame = frame[rows]
    return list(zip(frame["cache_id"].to_list(), frame["sample_id"].to_list(), strict=True))


def audit(plan, workers, table, outcomes, passes):
    """Compare what every consumer saw, batch by batch, with what the plan declares for it."""
    rows_of = [Counter() for _ in range(passes)]
    for rank, (kind, result) in enumerate(outcomes):
        assert kind == "returned", result
        length, seen = result
        assert length == plan.batches
        consumers = plan.consumers(rank, max(1, workers))
        for completed, batches in enumerate(seen):
            assert [(worker, len(batch)) for worker, batch in batches] == list(plan.deliveries(rank, max(1, workers)))
            for consumer in consumers:
                read = [each for worker, batch in batches if worker == consumer.worker for each in batch]
                assert len(read) == consumer.quota
                if plan.seed is None:
                    assert read == [table[row] for row in consumer.ordered_positions(completed)]
                elif plan.partition == "split":
                    assert len(set(read)) <= len(consumer.population)
                rows_of[completed].update(read)
    assert all(seen.total() == plan.effective_samples for seen in rows_of)
    return rows_of


CASES = [
    # ranks, workers, start method, samples, batch size, drop_last, rows
    (2, 0, "spawn", 11, 2, False, None),
    (2, 1, "forkserver", 11, 3, False, None),
    (3, 2, "fork", 11, 1, False, None),
    (3, 2, "fork", 11, 2, True, None),
    (3, 0, "spawn", 2, 2, False, [0, 10]),
    (2, 2, "fork", 7, 4, False, [5, 5, 0, 9, 3, 3, 3]),
    (3, 1, "fork", 30, 4, False, [2, 8]),
    (2, 0, "spawn", 3, 2, True, None),
]


@pytest.mark.parametrize(("ranks", "workers", "method", "samples", "batch_size", "drop_last", "rows"), CASES)
def test_f10_ordered_splits_are_read_as_declared(
    paths, tmp_path, ranks, workers, method, samples, batch_size, drop_last, rows
):
    table = table_of(paths, rows)
    given = {
        "shuffle": False,
        "samples_per_epoch": samples,
        "batch_size": batch_size,
        "drop_last": drop_last,
        "num_workers": workers,
        "multiprocessing_context": method,
    }
    outcomes = run_ranks(ranks, tmp_path / "meeting", quiet_read, paths, rows, 3, given)
    plan = Plan(samples, len(table), ranks, batch_size, drop_last, "split", None)
    passes = audit(plan, workers, table, outcomes, 3)
    if samples == len(table) and not drop_last:
        for seen in passes:
            padding = seen - Counter(table)
            assert seen >= Counter(table)
            assert padding.total() == plan.effective_samples - samples < ranks


def quiet_read(rank, *arguments):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*do not divide evenly")
        return torch_ranks.read(rank, *arguments)


@pytest.mark.parametrize(("ranks", "workers", "partition"), [(2, 1, "split"), (3, 0, "split"), (2, 2, "replicate")])
def test_f10_shuffled_ranks_own_rows_as_declared(paths, tmp_path, ranks, workers, partition):
    table = table_of(paths, None)
    given = {
        "seed": 8,
        "samples_per_epoch": 600,
        "batch_size": 10,
        "num_workers": workers,
        "worker_partition": partition,
        "multiprocessing_context": "fork",
    }
    outcomes = run_ranks(ranks, tmp_path / "meeting", quiet_read, paths, None, 1, given)
    plan = Plan(600, len(table), ranks, 10, False, partition, 8)
    audit(plan, workers, table, outcomes, 1)
    owned = [
        {each for who, batch in result[1][0] if who == worker for each in batch}
        for _, result in outcomes
        for worker in range(max(1, workers))
    ]
    if partition == "replicate":
        assert all(each == set(table) for each in owned)
        draws = [tuple(map(str, result[1][0])) for _, result in outcomes]
        assert len(set(draws)) == ranks
    else:
        assert sum(map(len, owned)) == len(table)
        assert set().union(*owned) == set(table)
        assert [len(each) for each in owned] == [
            len(consumer.population) for rank in range(ranks) for consumer in plan.consumers(rank, max(1, workers))
        ]
        assert owned[0] != set(table[: len(owned[0])])


def random_seeds(rank, paths):
    with recorded_events() as log, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        built = loader(open_caches(paths), batch_size=2, worker_partition="split", verbose=True)
        rows = {each for batch in built for each in batch}
    [ready] = log.named("loader_ready")
    return ready, rows, [(warning.category.__name__, str(warning.message), warning.filename) for warning in caught]


def test_f04_a_random_seed_is_agreed_and_only_rank_zero_warns_of_padding(paths, tmp_path):
    outcomes = [result for _, result in run_ranks(3, tmp_path / "meeting", random_seeds, paths)]
    assert len({ready["seed"] for ready, _, _ in outcomes}) == 1
    assert [ready["rank"] for ready, _, _ in outcomes] == ["0", "1", "2"]
    assert len({ready["worker_seeds"] for ready, _, _ in outcomes}) == 3
    assert {(ready["world_size"], ready["samples"], ready["samples_per_rank"]) for ready, _, _ in outcomes} == {
        ("3", "11", "4")
    }
    assert not outcomes[0][1] & outcomes[1][1]
    [warning] = outcomes[0][2]
    assert warning[0] == "UserWarning"
    assert "11 samples per epoch do not divide evenly among 3 ranks" in warning[1]
    assert "each rank takes 4 in 2 batches, 12 in all (1 repeated as padding)" in warning[1]
    assert Path(warning[2]).name == "torch_support.py"
    assert [each[2] for each in outcomes[1:]] == [[], []]


def construct(rank, paths, of_rank, rows_of_rank=None):
    dataset = open_caches(paths[rank] if isinstance(paths[0], list) else paths)
    if rows_of_rank is not None:
        dataset.update_metadata(dataset.get_metadata()[rows_of_rank[rank]])
    built = loader(dataset, **of_rank[rank])
    return sum(map(len, built))


EVERY = list(range(11))
DISAGREEMENTS = [
    ("samples_per_epoch: 10 on rank 0, 12 on rank 1", [{"samples_per_epoch": 10}, {"samples_per_epoch": 12}], None),
    ("batch_size: 1 on rank 0, 2 on rank 1", [{}, {"batch_size": 2}], None),
    ("drop_last: False on rank 0, True on rank 1", [{}, {"drop_last": True}], None),
    ("shuffle: True on rank 0, False on rank 1", [{}, {"shuffle": False, "worker_partition": "replicate"}], None),
    ("worker_partition: replicate on rank 0, split on rank 1", [{}, {"worker_partition": "split"}], None),
    ("seed: random on rank 0, 4 on rank 1", [{}, {"seed": 4}], None),
    ("table: ", [{}, {}], [EVERY, EVERY[::-1]]),
]


@pytest.mark.parametrize(("told", "of_rank", "rows"), DISAGREEMENTS)
def test_f04_any_difference_is_a_value_error_on_every_rank(paths, tmp_path, told, of_rank, rows):
    for kind, message in run_ranks(2, tmp_path / "meeting", construct, paths, of_rank, rows):
        assert kind == "ValueError"
        assert told in message
        assert "on rank 0" in message
        assert "on rank 1" in message


def test_f04_what_may_differ_does_and_caches_are_known_by_content(runtime, paths, tmp_path):
    import shutil

    copies = [Path(shutil.copytree(path, tmp_path / "elsewhere" / path.name)) for path in paths]
    other = write(runtime, tmp_path, numbered("a", 7, size=9), numbered("b", 4))
    of_rank = [{"num_workers": 1, "verbose": True}, {"worker_partition": "replicate"}]
    outcomes = run_ranks(2, tmp_path / "meeting", construct, [paths, copies], of_rank)
    assert outcomes == [("returned", 6), ("returned", 6)]
    for kind, message in run_ranks(2, tmp_path / "other meeting", construct, [paths, other], [{}, {}]):
        assert kind == "ValueError"
        assert "caches: " in message
        assert "table: " not in message


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ({"batch_size": 0}, "ValueError"),
        ({"batch_size": "many"}, "TypeError"),
        ({"work_dir": "/nowhere"}, "FileNotFoundError"),
        # A directory in which nothing can be made.
        ({"work_dir": "/proc"}, "FileNotFoundError"),
    ],
)
def test_f04_a_bad_argument_on_one_rank_is_told_on_every_rank(paths, tmp_path, bad, kind):
    outcomes = run_ranks(3, tmp_path / "meeting", construct, paths, [{}, bad, {}])
    assert outcomes[1][0] == kind
    for rank in (0, 2):
        assert outcomes[rank][0] == "ValueError"
        assert f"rank 1: {kind}: " in outcomes[rank][1]


def stumble(rank, paths):
    warnings.simplefilter("error")
    if rank == 1:
        resources.observe = lambda affinity: resources.CpuBudget(1, ("cpu.max: torn",))
    return len(loader(open_caches(paths), native_num_workers="auto"))


def test_f04_whatever_stops_one_rank_is_told_on_every_rank(paths, tmp_path):
    (kind, _), (other_kind, other) = reversed(run_ranks(2, tmp_path / "meeting", stumble, paths))
    assert (kind, other_kind) == ("RuntimeWarning", "ValueError")
    assert "refused on rank 1: RuntimeWarning: a CPU limit cannot be read" in other


def several(rank, paths):
    dataset = open_caches(paths)
    said = []
    for number in range(3):
        try:
            said.append(len(loader(dataset, batch_size=2 if number == 1 and rank == 1 else 1)))
        except ValueError as error:
            said.append(type(error).__name__)
    return said


def test_f04_after_a_refusal_ranks_can_construct_the_next_loader(paths, tmp_path):
    outcomes = run_ranks(2, tmp_path / "meeting", several, paths)
    assert outcomes == [("returned", [6, "ValueError", 6])] * 2


def late(rank, paths, gone):
    agreement.PATIENCE_SECONDS = 3.0
    dataset = open_caches(paths)
    if rank == 1:
        # Comes when the first has given up: until then nobody writes.
        gone.read_bytes()
    try:
        return len(loader(dataset))
    finally:
        if rank == 0:
            gone.write_bytes(b"gone")


def test_f04_a_rank_that_comes_too_late_is_told_and_so_are_those_that_waited(paths, tmp_path):
    os.mkfifo(tmp_path / "gone")
    outcomes = run_ranks(3, tmp_path / "meeting", late, paths, tmp_path / "gone")
    for kind, message in outcomes:
        assert kind == "RuntimeError"
        assert "rank 1 did not construct loader 0 of this group within 3 s" in message
        assert "in the same order" in message
    assert agreement.PATIENCE_SECONDS == 60


def local_counts(rank, paths, value):
    os.environ["LOCAL_WORLD_SIZE"] = value
    return len(loader(open_caches(paths), num_workers=0, native_num_workers=1))


@pytest.mark.parametrize("value", ["0", "3", "two"])
def test_f08_an_impossible_local_world_size_in_a_group_is_refused(paths, tmp_path, value):
    for kind, message in run_ranks(2, tmp_path / "meeting", local_counts, paths, value):
        assert kind == "ValueError"
        assert "LOCAL_WORLD_SIZE must be an integer from 1 to the world size, 2" in message


def test_f10_the_cases_cover_what_must_be_covered():
    assert {case[0] for case in CASES} == {2, 3}
    assert {case[1] for case in CASES} == {0, 1, 2}
    assert {case[2] for case in CASES} == {"spawn", "fork", "forkserver"}
    plans = [
        Plan(samples, 11 if rows is None else len(rows), ranks, batch, drop, "split", None)
        for ranks, _, _, samples, batch, drop, rows in CASES
    ]
    idle = [
        any(not each.quota for rank in range(plan.world_size) for each in plan.consumers(rank, max(1, case[1])))
        for plan, case in zip(plans, CASES, strict=True)
    ]
    assert any(idle)
    assert any(plan.rows < plan.world_size * max(1, case[1]) for plan, case in zip(plans, CASES, strict=True))
    assert len(list(itertools.groupby(sorted(plan.effective_samples > plan.samples for plan in plans)))) == 2
