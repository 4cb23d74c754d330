"""Loaders in the main process: length, batches, windows, seeds, snapshots, and who owns which rows."""

import gc
import inspect
import itertools
import pickle
import re
import warnings
from collections import Counter

import pytest

pytest.importorskip("torch.utils.data")

import torch
from support import break_record, native_threads, numbered, opened, write
from torch.utils.data import DataLoader
from torch_support import flat, identities, in_order, loader, recorded_events

import dataset_rt as drt


@pytest.fixture
def dataset(runtime, tmp_path):
    return opened(runtime, write(runtime, tmp_path, numbered("a", 7), numbered("b", 3)))


@pytest.mark.parametrize(
    ("samples", "batch_size", "drop_last"),
    list(itertools.product([1, 2, 3, 9, 10, 11, 25], [1, 3, 4, 10, 2**40], [False, True])),
)
def test_f03_length_and_batches_are_exact(dataset, samples, batch_size, drop_last):
    built = loader(dataset, shuffle=False, samples_per_epoch=samples, batch_size=batch_size, drop_last=drop_last)
    assert isinstance(built, DataLoader)
    expected = samples // batch_size if drop_last else -(-samples // batch_size)
    assert len(built) == expected
    batches = list(built)
    assert len(batches) == expected
    assert [len(batch) for batch in batches[:-1]] == [batch_size] * (expected - 1 if expected else 0)
    taken = expected * batch_size if drop_last else samples
    assert flat(batches) == list(itertools.islice(itertools.cycle(in_order(dataset)), taken))


def test_f03_the_epoch_length_is_inherited_at_construction(dataset):
    dataset.set_epoch_len(4)
    inherited = loader(dataset, shuffle=False, batch_size=3)
    dataset.set_epoch_len(9)
    assert len(inherited) == 2
    assert len(flat(inherited)) == 4
    assert len(flat(loader(dataset, batch_size=3, samples_per_epoch=6))) == 6


def test_f03_passes_take_the_following_windows_finished_or_abandoned(dataset):
    built = loader(dataset, shuffle=False, samples_per_epoch=4, batch_size=2)
    order = in_order(dataset)
    assert flat(built) == order[0:4]
    abandoned = iter(built)
    assert next(abandoned) == order[4:6]
    assert flat(built) == [*order[8:10], *order[0:2]]
    first, second = iter(built), iter(built)
    assert next(second) == order[6:8]
    assert next(first) == order[2:4]
    assert next(abandoned) == order[6:8]


def test_f03_a_pass_takes_its_window_when_it_starts(dataset):
    built = loader(dataset, shuffle=False, samples_per_epoch=2, batch_size=2)
    unread = iter(built)
    assert flat(built) == in_order(dataset)[2:4]
    assert next(unread) == in_order(dataset)[0:2]


def test_f03_a_loader_keeps_the_table_it_was_constructed_with(runtime, dataset):
    frame = dataset.get_metadata()
    dataset.update_metadata(frame.reverse().head(6))
    order = in_order(dataset)
    built = loader(dataset, shuffle=False, batch_size=6)
    dataset.update_metadata(frame.head(1))
    dataset.close()
    assert flat(built) == order


@pytest.mark.parametrize("weighted", [False, True])
def test_f06_a_loader_without_workers_is_the_dataset_with_the_logged_seed(runtime, dataset, weighted):
    import polars as pl

    frame = dataset.get_metadata()
    if weighted:
        frame = frame.reverse().with_columns(weight=pl.col("number") + 0.5)
    dataset.update_metadata(frame)
    for partition in (None, "split", "replicate"):
        with recorded_events() as log:
            built = loader(dataset, seed=123, batch_size=4, worker_partition=partition, verbose=True)
            seen = [flat(built), flat(built)]
        [ready], [started] = log.named("loader_ready"), log.named("reader_started")
        assert (ready["seed"], ready["worker_seeds"]) == ("123", started["seed"])
        plain = opened(runtime, dataset.cache_paths, seed=int(started["seed"]), shuffle=True)
        plain.update_metadata(frame)
        assert seen == [identities(list(plain)), identities(list(plain))]


def test_f08_a_random_seed_can_be_read_and_given_again(dataset):
    with recorded_events() as log:
        first = loader(dataset, verbose=True)
        other = loader(dataset, verbose=True)
    seeds = [int(event["seed"]) for event in log.named("loader_ready")]
    assert seeds[0] != seeds[1]
    again = loader(dataset, seed=seeds[0])
    passes = [flat(first) for _ in range(3)]
    assert passes == [flat(again) for _ in range(3)]
    assert passes != [flat(other) for _ in range(3)]


def test_f03_collation_gets_lists_of_samples_or_of_transformed_ones(dataset):
    assert [type(batch) for batch in loader(dataset, collate_fn=lambda batch: batch)] == [list] * 10
    [batch] = loader(dataset, collate_fn=lambda batch: batch, batch_size=10, shuffle=False)
    assert all(type(sample) is drt.CachedSample for sample in batch)
    transformed = loader(
        dataset,
        sample_transform_fn=lambda sample: sample.metadata["number"] * 2,
        collate_fn=tuple,
        batch_size=10,
        shuffle=False,
    )
    assert list(transformed) == [(0, 2, 4, 6, 8, 10, 12, 0, 2, 4)]
    tensors = loader(dataset, sample_transform_fn=lambda sample: sample.sample_id, collate_fn=None, batch_size=4)
    assert [type(batch) for batch in tensors] == [torch.Tensor] * 3
    [batch] = loader(dataset, collate_fn=None, batch_size=10, shuffle=False)
    assert isinstance(batch, drt.CachedSample)
    assert batch.metadata["number"].tolist() == [0, 1, 2, 3, 4, 5, 6, 0, 1, 2]


def test_f03_an_error_of_the_transform_comes_out_and_the_pass_goes_on(dataset):
    def fail_once(sample, failed=[]):  # noqa: B006
        if not failed:
            failed.append(sample)
            raise KeyError("mine")
        return sample.sample_id

    batches = iter(loader(dataset, sample_transform_fn=fail_once, collate_fn=list, shuffle=False))
    with pytest.raises(KeyError, match="mine"):
        next(batches)
    assert list(batches) == [[1], [2], [3], [4], [5], [6], [0], [1], [2]]


@pytest.mark.parametrize("workers", [0, 1])
def test_f03_a_sample_that_cannot_be_read_fails_its_batch_and_no_other(runtime, tmp_path, workers):
    [path] = write(runtime, tmp_path, numbered("a", 10))
    break_record(path, 4)
    built = loader(opened(runtime, [path]), shuffle=False, batch_size=3, num_workers=workers)
    cache_id = opened(runtime, [path]).get_metadata()["cache_id"][0]
    for _ in range(2):
        batches = iter(built)
        first = next(batches)
        with pytest.raises(ValueError, match=f"sample 4 of cache {cache_id} in {re.escape(str(path))}"):
            next(batches)
        assert [first, *batches] == [[(cache_id, row) for row in rows] for rows in ([0, 1, 2], [6, 7, 8], [9])]


def test_f03_an_error_of_the_collation_fails_its_batch_and_no_other(dataset):
    def refuse_four(batch):
        if any(sample.metadata["number"] == 4 for sample in batch):
            raise LookupError("four")
        return [sample.metadata["number"] for sample in batch]

    batches = iter(loader(dataset, shuffle=False, batch_size=3, collate_fn=refuse_four))
    assert next(batches) == [0, 1, 2]
    with pytest.raises(LookupError, match="four"):
        next(batches)
    assert list(batches) == [[6, 0, 1], [2]]
    assert next(batches, None) is None


def test_f03_torch_pins_what_it_is_asked_to_pin(dataset):
    plain = loader(dataset, seed=1, batch_size=4, collate_fn=None)
    pinned = loader(dataset, seed=1, batch_size=4, collate_fn=None, pin_memory=True)
    assert (plain.pin_memory, pinned.pin_memory) == (False, True)
    with warnings.catch_warnings():
        # Where there is nothing to copy to, torch says so and pins nothing.
        warnings.filterwarnings("ignore", message=".*pin_memory")
        for _ in range(2):
            assert [batch.sample_id.tolist() for batch in pinned] == [batch.sample_id.tolist() for batch in plain]


def test_f03_defaults_are_the_documented_ones():
    parameters = inspect.signature(drt.CachedDataset.to_torch_dataloader).parameters.values()
    assert {each.name: each.default for each in parameters if each.name != "self"} == {
        "batch_size": 1,
        "sample_transform_fn": None,
        "collate_fn": None,
        "shuffle": True,
        "seed": "random",
        "samples_per_epoch": None,
        "worker_partition": None,
        "work_dir": None,
        "num_workers": "auto",
        "drop_last": False,
        "pin_memory": False,
        "timeout": 0,
        "native_num_workers": "auto",
        "multiprocessing_context": "spawn",
        "worker_init_fn": None,
        "prefetch_factor": "auto",
        "persistent_workers": "auto",
        "verbose": True,
    }
    assert {each.kind.name for each in parameters if each.name != "self"} == {"KEYWORD_ONLY"}


def test_f03_torch_is_told_what_was_resolved(dataset):
    def told(**given):
        built = loader(dataset, **given)
        method = built.multiprocessing_context and built.multiprocessing_context.get_start_method()
        return built.num_workers, built.persistent_workers, built.prefetch_factor, built.timeout, method

    assert told() == (0, False, None, 0, None)
    assert told(multiprocessing_context="fork") == (0, False, None, 0, None)
    assert told(num_workers=2) == (2, True, 2, 0, "forkserver")
    given = {"prefetch_factor": 3, "timeout": 2.5, "multiprocessing_context": "spawn", "persistent_workers": True}
    assert told(num_workers=1, **given) == (1, True, 3, 2.5, "spawn")
    assert told(num_workers=1, multiprocessing_context="inherit")[4] is None
    built = loader(dataset, batch_size=3, drop_last=True, collate_fn=list)
    assert (built.batch_size, built.drop_last, built.collate_fn.function, len(built.dataset)) == (3, True, list, 9)


def test_f03_a_pass_knows_its_length_and_ends_once(dataset):
    batches = iter(loader(dataset, batch_size=3))
    assert len(batches) == 4
    assert iter(batches) is batches
    assert len(list(batches)) == 4
    assert list(batches) == []


def test_f03_weights_decide_frequencies(runtime, tmp_path):
    import polars as pl

    dataset = opened(runtime, write(runtime, tmp_path, numbered("a", 4)))
    dataset.update_metadata(dataset.get_metadata().with_columns(weight=pl.Series([1, 2, 3, 4])))
    seen = Counter(
        sample_id for _, sample_id in flat(loader(dataset, samples_per_epoch=20_000, batch_size=500, seed=3))
    )
    expected = [2000, 4000, 6000, 8000]
    # Three degrees of freedom: beyond 21.1 once in 10,000 seeds.
    assert sum((seen[row] - expected[row]) ** 2 / expected[row] for row in range(4)) < 21.1


def test_f07_what_travels_is_small(dataset):
    built = loader(dataset, samples_per_epoch=2**53, batch_size=2**40)
    assert len(pickle.dumps(built.dataset)) < 1024
    assert len(built) == 2**13
    next(iter(loader(dataset, samples_per_epoch=2**53, batch_size=5)))


def test_f03_batches_for_torch_are_no_larger_than_the_budget(dataset):
    assert loader(dataset, batch_size=2**40).batch_size == 10
    assert loader(dataset, batch_size=3).batch_size == 3
    empty = loader(dataset, batch_size=11, drop_last=True)
    assert (len(empty), list(empty)) == (0, [])


def stop(_argument):
    raise StopIteration


@pytest.mark.parametrize("callback", ["sample_transform_fn", "collate_fn"])
@pytest.mark.parametrize("num_workers", [0, 1])
def test_f03_a_callback_that_raises_stop_iteration_does_not_end_the_pass(dataset, callback, num_workers):
    built = loader(dataset, num_workers=num_workers, **{callback: stop})
    with pytest.raises(RuntimeError, match=f"{callback} raised StopIteration"):
        next(iter(built))


def test_f03_an_init_function_that_raises_stop_iteration_does_not_end_the_pass(dataset):
    with pytest.raises(RuntimeError, match="worker_init_fn raised StopIteration"):
        list(loader(dataset, num_workers=1, worker_init_fn=stop))


def test_f08_the_directory_goes_with_the_last_reference(dataset):
    gc.disable()
    try:
        built = loader(dataset)
        list(built)
        directory = built.dataset.config.parent
        assert directory.is_dir()
        del built
        assert not directory.exists()
    finally:
        gc.enable()


def test_f08_construction_starts_no_reader_and_the_first_pass_does(dataset):
    before = len(native_threads())
    with recorded_events() as log:
        built = loader(dataset, native_num_workers=3, verbose=True)
        assert [event["event"] for event in log.events] == ["loader_ready"]
        assert len(native_threads()) == before
        reading = iter(built)
        assert len(native_threads(before + 3)) == before + 3
    assert [event["event"] for event in log.events] == ["loader_ready", "reader_started", "reader_pass"]
    assert len(next(reading)) == 1


@pytest.mark.parametrize("workers", [0, 1])
def test_f06_a_run_goes_on_at_any_pass(dataset, workers):
    given = {"seed": 4, "samples_per_epoch": 4, "batch_size": 3, "num_workers": workers}
    passes = [flat(built) for built in [loader(dataset, **given)] for _ in range(5)]
    assert passes[0] not in passes[3:]
    again = loader(dataset, **given)
    for _ in range(3):
        iter(again)
    assert [flat(again), flat(again)] == passes[3:]


def test_f08_any_finite_timeout_will_do(dataset):
    assert len(list(loader(dataset, num_workers=1, timeout=1e300))) == len(dataset)
