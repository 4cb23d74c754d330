"""Loaders that threads share, and those that are copied, forked, wrapped or built again."""

import copy
import gc
import json
import os
import pickle
import threading
from collections import Counter

import pytest

pytest.importorskip("torch.utils.data")

from support import numbered, opened, write
from torch.utils.data import DataLoader, Subset, random_split
from torch_support import flat, in_order, loader


@pytest.fixture
def dataset(runtime, tmp_path):
    return opened(runtime, write(runtime, tmp_path, numbered("a", 7), numbered("b", 3)))


def in_threads(count, work):
    start, results = threading.Barrier(count), []

    def run():
        start.wait()
        results.append(work())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_b06_threads_may_share_one_pass(dataset):
    dataset.set_epoch_len(500)
    for _ in range(20):
        shared = iter(loader(dataset, shuffle=False, batch_size=1))
        parts = in_threads(4, lambda shared=shared: flat(shared))
        assert Counter(flat(parts)) == Counter(in_order(dataset) * 50)


def test_f03_passes_that_threads_begin_at_once_have_windows_of_their_own(dataset):
    for _ in range(20):
        built = loader(dataset, shuffle=False, samples_per_epoch=2)
        firsts = in_threads(4, lambda built=built: flat(built))
        assert sorted(flat(firsts)) == sorted(in_order(dataset)[:8])


def forked(built):
    """What a forked child reads."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writable, json.dumps(flat(built)).encode())
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as answer:
        rows = [tuple(row) for row in json.loads(answer.read())]
    assert os.waitpid(child, 0)[1] == 0
    return rows


COPIES = {
    "pickle": lambda built: flat(pickle.loads(pickle.dumps(built))),
    "deepcopy": lambda built: flat(copy.deepcopy(built)),
    "copy": lambda built: flat(copy.copy(built)),
    "fork": forked,
}


@pytest.mark.parametrize("pin", [False, True])
@pytest.mark.parametrize("way", COPIES)
@pytest.mark.filterwarnings("ignore:.*pin_memory")
def test_f03_a_copy_goes_on_where_the_loader_was(dataset, way, pin):
    order = in_order(dataset)
    built = loader(dataset, shuffle=False, samples_per_epoch=3, batch_size=2, pin_memory=pin)
    assert COPIES[way](built) == order[0:3]
    assert flat(built) == order[0:3]
    iter(built)
    assert COPIES[way](built) == flat(built) == order[6:9]


def test_f08_a_copy_in_this_process_keeps_the_directory(dataset):
    built = loader(dataset, shuffle=False)
    other = copy.deepcopy(built)
    directory = built.dataset.config.parent
    del built
    gc.collect()
    assert flat(other) == in_order(dataset)
    del other
    gc.collect()
    assert not directory.exists()


def test_b04_a_child_does_not_wait_for_a_thread_of_its_parent(dataset):
    built = loader(dataset, shuffle=False)
    with built.dataset.lock():
        assert forked(built) == in_order(dataset)


@pytest.mark.parametrize("workers", [0, 1])
def test_f03_no_other_loader_reads_the_dataset_of_a_loader(dataset, workers):
    built = loader(dataset, num_workers=workers, batch_size=2)
    method = {"multiprocessing_context": "fork"} if workers else {}
    for given in ({"batch_size": 2}, {"batch_size": None}, {"worker_init_fn": built.worker_init_fn}):
        wrapped = DataLoader(built.dataset, num_workers=workers, collate_fn=built.collate_fn, **method, **given)
        with pytest.raises(RuntimeError, match=r"can only be read by that loader.*to_torch_dataloader"):
            next(iter(wrapped))
    for part in [Subset(built.dataset, [0, 1]), *random_split(built.dataset, [6, 4])]:
        with pytest.raises(TypeError, match=r"the dataset of a loader .*no sample with an index.*update_metadata"):
            next(iter(DataLoader(part, num_workers=workers, **method)))
    assert len(flat(built)) == 10


def built_again(built, **changed):
    """As libraries do that take a loader apart."""
    given = {name: getattr(built, name) for name in ("batch_size", "num_workers", "drop_last", "collate_fn")}
    if built.num_workers:
        given |= {"multiprocessing_context": "fork", "persistent_workers": built.persistent_workers}
    return type(built)(built.dataset, **given | changed)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize(
    ("workers", "changed"),
    [
        (0, {"num_workers": 1, "multiprocessing_context": "fork", "persistent_workers": True}),
        (2, {"num_workers": 1}),
        (2, {"num_workers": 3}),
        (2, {"num_workers": 0, "multiprocessing_context": None, "persistent_workers": False}),
        (2, {"persistent_workers": False}),
        (0, {"batch_size": 3}),
        (0, {"batch_size": None}),
        (0, {"drop_last": True}),
    ],
)
def test_f03_a_loader_built_again_with_other_numbers_is_refused(dataset, workers, changed):
    built = loader(dataset, shuffle=False, num_workers=workers, batch_size=2)
    assert flat(built_again(built)) == flat(built)
    name, value = next(iter(changed.items()))
    with pytest.raises(
        RuntimeError, match=rf"^{name} of this loader must stay .*, found {value}: .*to_torch_dataloader"
    ):
        iter(built_again(built, **changed))


def test_f03_the_number_of_workers_cannot_be_changed_later(dataset):
    built = loader(dataset, shuffle=False, num_workers=2, batch_size=2)
    built.num_workers = 1
    with pytest.raises(RuntimeError, match="num_workers of this loader must stay 2, found 1"):
        iter(built)
    built.num_workers = 2
    assert len(flat(built)) == len(dataset)
