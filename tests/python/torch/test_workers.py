"""Loading workers: every start method, windows from pass to pass, callbacks, errors, and what becomes of processes."""

import contextlib
import logging
import os
from collections import Counter
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest

pytest.importorskip("torch.utils.data")

from support import native_threads, numbered, opened, write
from torch.utils.data import get_worker_info
from torch_support import declared, identities, in_order, loader, parse_event, tagged, tagged_pid

from dataset_rt.torch.plan import Plan
from dataset_rt.torch.worker import Batches


@pytest.fixture
def dataset(runtime, tmp_path):
    return opened(runtime, write(runtime, tmp_path, numbered("a", 7), numbered("b", 4)))


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver", "inherit"])
def test_f09_every_start_method_reads_the_declared_rows(dataset, method):
    built = loader(
        dataset, shuffle=False, num_workers=2, batch_size=3, collate_fn=tagged, multiprocessing_context=method
    )
    plan = Plan(11, 11, 1, 3, False, "split", None)
    assert [list(built) for _ in range(2)] == list(declared(dataset, plan, 2, 2))
    assert len(built) == 4


@pytest.mark.parametrize(
    ("samples", "batch_size", "workers", "drop_last"),
    [(11, 2, 2, True), (5, 2, 2, False), (25, 4, 2, False), (2, 1, 2, False), (1, 3, 2, False), (11, 2**40, 2, False)],
)
def test_f10_ordered_splits_over_three_passes_are_as_declared(dataset, samples, batch_size, workers, drop_last):
    built = loader(
        dataset,
        shuffle=False,
        samples_per_epoch=samples,
        num_workers=workers,
        batch_size=batch_size,
        drop_last=drop_last,
        collate_fn=tagged,
    )
    plan = Plan(samples, 11, 1, batch_size, drop_last, "split", None)
    assert [list(built) for _ in range(3)] == list(declared(dataset, plan, workers, 3))
    assert len(built) == plan.batches


def test_f10_replicated_order_starts_at_the_beginning_in_every_worker(dataset):
    built = loader(dataset, shuffle=False, worker_partition="replicate", num_workers=2, batch_size=2, collate_fn=tagged)
    order = in_order(dataset)
    batches = list(built)
    assert [batch for worker, batch in batches if worker == 0] == [order[0:2], order[2:4], order[4:6]]
    assert [batch for worker, batch in batches if worker == 1] == [order[0:2], order[2:4], order[4:5]]


@pytest.mark.parametrize("partition", ["split", "replicate"])
def test_f10_shuffled_consumers_draw_from_their_own_rows_with_their_own_seeds(runtime, dataset, partition):
    import polars as pl

    frame = dataset.get_metadata().with_columns(weight=pl.col("number") + 1.0)
    dataset.update_metadata(frame)
    given = {"seed": 5, "samples_per_epoch": 400, "num_workers": 2, "batch_size": 20, "worker_partition": partition}
    built = loader(dataset, collate_fn=tagged, **given)
    passes = [list(built) for _ in range(2)]
    plan = Plan(400, 11, 1, 20, False, partition, 5)
    drawn = {
        worker: [each for batches in passes for who, batch in batches if who == worker for each in batch]
        for worker in range(2)
    }
    if partition == "replicate":
        for consumer in plan.consumers(0, 2):
            plain = opened(runtime, dataset.cache_paths, seed=consumer.seed, shuffle=True)
            plain.update_metadata(frame)
            plain.set_epoch_len(400)
            assert drawn[consumer.worker] == identities(list(plain))
    else:
        owned = [set(drawn[worker]) for worker in range(2)]
        assert owned[0].isdisjoint(owned[1])
        assert owned[0] | owned[1] == set(in_order(dataset))
        assert [len(rows) for rows in owned] == [len(each.population) for each in plan.consumers(0, 2)]
        assert owned[0] != set(in_order(dataset)[: len(owned[0])])
    again = loader(dataset, collate_fn=tagged, **given)
    assert [list(again) for _ in range(2)] == passes


def test_f03_abandoned_passes_of_persistent_workers_have_used_their_windows(dataset):
    given = {"shuffle": False, "samples_per_epoch": 4, "batch_size": 1, "worker_partition": "replicate"}
    built = loader(dataset, num_workers=1, prefetch_factor=1, **given)
    alone = loader(dataset, **given)
    for each in (built, alone):
        assert next(iter(each)) == in_order(dataset)[0:1]
        assert list(each) == [[row] for row in in_order(dataset)[4:8]]


def test_f03_two_live_iterators_of_persistent_workers_have_windows_of_their_own(dataset):
    built = loader(dataset, shuffle=False, samples_per_epoch=3, batch_size=1, num_workers=1, collate_fn=tagged_pid)
    order = in_order(dataset)
    first = iter(built)
    pid, row = next(first)
    assert row == order[0]
    second = iter(built)
    other_pid, row = next(second)
    assert row == order[3]
    assert other_pid != pid
    assert next(first) == (pid, order[1])
    assert list(second) == [(other_pid, order[4]), (other_pid, order[5])]
    assert list(first) == [(pid, order[2])]
    # A finished pass leaves its workers to the next.
    assert list(built) == [(other_pid, order[row]) for row in (6, 7, 8)]
    assert [pid for pid, _ in built] == [other_pid] * 3
    assert next(second, None) is None


@pytest.mark.filterwarnings("ignore:persistent_workers=False")
@pytest.mark.parametrize("order", [{"seed": "random"}, {"shuffle": False}])
def test_f03_what_workers_repeat_does_not_depend_on_an_explicit_seed(dataset, order):
    built = loader(dataset, samples_per_epoch=6, num_workers=1, batch_size=3, persistent_workers=False, **order)
    assert list(built) == list(built)


@pytest.mark.filterwarnings("ignore:persistent_workers=False")
def test_f03_workers_that_end_with_a_pass_repeat_it(dataset):
    built = loader(
        dataset, seed=4, samples_per_epoch=6, num_workers=1, batch_size=3, persistent_workers=False, collate_fn=tagged
    )
    passes = [list(built) for _ in range(2)]
    assert passes[0] == passes[1]
    persistent = loader(dataset, seed=4, samples_per_epoch=6, num_workers=1, batch_size=3, collate_fn=tagged)
    assert list(persistent) == passes[0]
    assert list(persistent) != passes[0]


def number_of(sample):
    return sample.metadata["number"]


def fail_at_five(sample):
    if sample.metadata["number"] == 5:
        raise LookupError("number five")
    return sample.metadata["number"]


class Marks:
    """Leaves a file for each worker, saying whether native set-up was there first."""

    def __init__(self, directory: Path, expected: list[int]) -> None:
        self.directory = directory
        self.expected = expected

    def __call__(self, worker_id: int) -> None:
        threads = native_threads(self.expected[worker_id])
        (self.directory / str(worker_id)).write_text(f"{len(threads)} {get_worker_info().num_workers}")


def test_f03_callbacks_run_in_the_workers_after_native_set_up(dataset, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    built = loader(
        dataset,
        shuffle=False,
        sample_transform_fn=number_of,
        collate_fn=tuple,
        worker_init_fn=Marks(marks, [3, 0]),
        num_workers=2,
        native_num_workers=3,
        batch_size=11,
    )
    assert list(built) == [(0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3)]
    # The second worker has nothing to do, and so no native state.
    assert {mark.name: mark.read_text() for mark in marks.iterdir()} == {"0": "3 2", "1": "0 2"}


def test_f03_an_error_of_a_callback_in_a_worker_comes_out_with_its_type(dataset):
    built = loader(
        dataset, shuffle=False, sample_transform_fn=fail_at_five, collate_fn=tuple, num_workers=1, batch_size=3
    )
    batches = iter(built)
    assert next(batches) == (0, 1, 2)
    with pytest.raises(LookupError, match="number five"):
        next(batches)
    assert list(batches) == [(6, 0, 1), (2, 3)]


def test_f03_missing_artifacts_are_an_error_of_every_pass_and_not_a_dead_worker(dataset, tmp_path):
    work_dir = tmp_path / "work"
    work_dir.mkdir()
    built = loader(dataset, num_workers=1, work_dir=work_dir)
    [directory] = work_dir.iterdir()
    (directory / "population.bin").unlink()
    for _ in range(2):
        with pytest.raises(FileNotFoundError, match=r"population\.bin"):
            list(built)


@pytest.fixture
def log_file(tmp_path):
    logger = logging.getLogger("dataset_rt.loader")
    handler = logging.FileHandler(tmp_path / "log")
    logger.addHandler(handler)
    logger.setLevel("INFO")
    yield tmp_path / "log"
    logger.removeHandler(handler)
    logger.setLevel("NOTSET")
    handler.close()


@pytest.mark.filterwarnings("ignore:persistent_workers=False")
@pytest.mark.parametrize("persistent", [True, False])
def test_f08_workers_log_starts_passes_and_idleness(dataset, log_file, persistent):
    built = loader(
        dataset,
        seed=3,
        samples_per_epoch=4,
        batch_size=4,
        num_workers=2,
        persistent_workers=persistent,
        verbose=True,
        # Workers that are forked share the handlers of this process.
        multiprocessing_context="fork",
    )
    for _ in range(2):
        list(built)
    events = [parse_event(line) for line in log_file.read_text().splitlines() if line.startswith("event=reader")]
    ids = Counter((event["event"], event["worker"]) for event in events)
    if persistent:
        expected = {("reader_started", "0"): 1, ("reader_pass", "0"): 2, ("reader_empty", "1"): 1}
    else:
        expected = {("reader_started", "0"): 2, ("reader_pass", "0"): 2, ("reader_empty", "1"): 2}
    assert ids == expected
    assert {event["sampling_reset"] for event in events} == {str(not persistent)}
    assert len({event["pid"] for event in events if event["worker"] == "0"}) == (1 if persistent else 2)
    plan = Plan(4, 11, 1, 4, False, "replicate", 3)
    assert {event["seed"] for event in events if event["worker"] == "0"} == {str(plan.consumer(0, 0, 2).seed)}
    assert all(int(event["pid"]) != os.getpid() for event in events)


class Waiting:
    """Makes batches when somebody has written to a pipe."""

    def __init__(self, pipe: Path) -> None:
        self.pipe = pipe

    def __call__(self, batch):
        self.pipe.read_bytes()
        return identities(batch)


def test_f03_a_batch_that_timed_out_is_given_later(dataset, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    batches = iter(
        loader(dataset, shuffle=False, batch_size=11, num_workers=1, timeout=0.1, collate_fn=Waiting(tmp_path / "pipe"))
    )
    with pytest.raises(RuntimeError, match=r"timed out after 0\.1 seconds"):
        next(batches)
    (tmp_path / "pipe").write_bytes(b"go on")
    given = []
    while not given:
        with contextlib.suppress(RuntimeError):
            given = next(batches)
    assert given == in_order(dataset)


def own_memory(_batch):
    """KiB that this process shares with no file."""
    [line] = [
        line for line in Path("/proc/self/smaps_rollup").read_text().splitlines() if line.startswith("Anonymous:")
    ]
    return int(line.split()[1])


def test_f07_workers_keep_no_table_of_their_own(dataset):
    import polars as pl

    given = {"num_workers": 1, "batch_size": 64, "samples_per_epoch": 256, "collate_fn": own_memory}
    small = max(loader(dataset, **given))
    rows = 4_000_000
    frame = dataset.get_metadata()[[0]]
    many = pl.concat([frame] * 8).select(pl.all().repeat_by(rows // 8).explode()).with_row_index("order")
    dataset.update_metadata(many.with_columns(weight=pl.col("order") % 7 + 1.0))
    built = loader(dataset, **given)
    assert built.dataset.plan.rows == rows
    assert len(ForkingPickler.dumps(Batches(built.dataset))) < 4096
    # Weights alone would be 31,250 KiB.
    assert max(built) - small < 8_000
