"""What each argument of a loader may be, and what is said of everything else."""

import sys
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path

import pytest

pytest.importorskip("torch.utils.data")

from support import numbered, opened, write
from torch_support import loader


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    import dataset_rt as drt

    with drt.DatasetRuntime(num_workers=1) as runtime:
        yield opened(runtime, write(runtime, tmp_path_factory.mktemp("caches"), numbered("a", 5)))


WRONG_TYPES = {
    "batch_size": [None, True, 1.0, "2"],
    "sample_transform_fn": [3, "f"],
    "collate_fn": [3],
    "shuffle": [None, 1, "yes"],
    "seed": [None, True, 1.5, b"random"],
    "samples_per_epoch": [True, 2.0, "3"],
    "worker_partition": [1, True],
    "work_dir": [3, b"/"],
    "num_workers": [None, True, 1.0],
    "drop_last": [None, 0],
    "pin_memory": [None, "cuda"],
    "timeout": [None, True, "1"],
    "native_num_workers": [None, False, 2.0],
    "multiprocessing_context": [None, 3],
    "worker_init_fn": [1],
    "prefetch_factor": [None, True, 2.0],
    "persistent_workers": [None, 1],
    "verbose": [None, 1],
}
WRONG_VALUES = {
    "batch_size": [0, -1, sys.maxsize + 1],
    "seed": [-1, 2**64, "auto"],
    "samples_per_epoch": [0, -5, 2**53 + 1],
    "worker_partition": ["shard", ""],
    "num_workers": [-1, "all", 1025, 2**62],
    "timeout": [-1, float("inf"), float("nan"), 1.5],
    "native_num_workers": [0, -1, 1025, "all"],
    "multiprocessing_context": ["thread"],
    "prefetch_factor": [0, -1, "none", 2, 2**16 + 1, 2**62],
    "persistent_workers": ["yes", True],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in WRONG_TYPES for value in WRONG_TYPES[name]])
def test_f08_another_type_is_a_type_error(dataset, name, value):
    with pytest.raises(TypeError, match=f"^{name}.* must be .*, found ") as refusal:
        loader(dataset, **{name: value})
    assert type(value).__name__ in str(refusal.value)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in WRONG_VALUES for value in WRONG_VALUES[name]])
def test_f08_an_impossible_value_is_a_value_error(dataset, name, value):
    with pytest.raises(ValueError, match=f"^{name} .*found ") as refusal:
        loader(dataset, **{name: value})
    assert str(value) in str(refusal.value)


@pytest.mark.parametrize(
    "given",
    [
        {"seed": 2**64 - 1},
        {"seed": 0},
        {"shuffle": False, "seed": "random"},
        {"batch_size": sys.maxsize},
        {"samples_per_epoch": 2**53},
        {"timeout": 0.0},
        {"timeout": 5, "num_workers": 1},
        {"prefetch_factor": 2**16, "num_workers": 1},
        {"persistent_workers": True, "num_workers": 1},
        {"persistent_workers": False},
        {"native_num_workers": 1024},
        {"multiprocessing_context": get_context("spawn"), "num_workers": 1},
        {"multiprocessing_context": "inherit", "num_workers": 1},
    ],
)
def test_f08_every_possible_value_is_taken(dataset, given):
    loader(dataset, **given)


def test_f08_a_seed_without_shuffling_is_refused(dataset):
    with pytest.raises(ValueError, match=r"seed must be 'random' with shuffle=False.*found 3"):
        loader(dataset, shuffle=False, seed=3)


def test_f08_an_inherited_epoch_that_is_too_long_is_refused(runtime, dataset):
    long = opened(runtime, dataset.cache_paths)
    long.set_epoch_len(2**53 + 1)
    with pytest.raises(ValueError, match=r"samples_per_epoch, inherited from len\(dataset\), must be"):
        loader(long)


def test_f08_work_dir_must_be_a_directory(dataset, tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        loader(dataset, work_dir=tmp_path / "none")
    assert missing.value.filename == str(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError) as no_directory:
        loader(dataset, work_dir=str(tmp_path / "file"))
    assert no_directory.value.filename == str(tmp_path / "file")


@pytest.mark.parametrize(
    ("work_dir", "found"),
    [
        ("", "an empty text"),
        ("a\0b", r"a NUL in 'a\\x00b'"),
        (Path("\ud800"), r"'\\ud800', which has letters that no name can have"),
    ],
)
def test_f08_a_work_dir_that_cannot_be_a_path_is_named(dataset, tmp_path, monkeypatch, work_dir, found):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"^work_dir must be an existing directory or None, found {found}$"):
        loader(dataset, work_dir=work_dir)
    assert list(tmp_path.iterdir()) == []


def local(sample):
    return sample


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver", "inherit"])
def test_f08_the_transform_is_pickled_before_anything_is_exported(dataset, tmp_path, method):
    with pytest.raises(ValueError, match=r"sample_transform_fn must be picklable for num_workers=1") as refusal:
        loader(
            dataset,
            sample_transform_fn=lambda sample: sample,
            num_workers=1,
            multiprocessing_context=method,
            work_dir=tmp_path,
        )
    assert refusal.value.__cause__ is not None
    assert list(tmp_path.iterdir()) == []
    loader(dataset, sample_transform_fn=local, num_workers=1, multiprocessing_context=method)


def test_f08_other_callbacks_must_be_picklable_where_they_are_sent(dataset):
    for name in ("collate_fn", "worker_init_fn"):
        with pytest.raises(ValueError, match=f"{name} must be picklable"):
            loader(dataset, num_workers=1, multiprocessing_context="spawn", **{name: lambda given: given})
        loader(dataset, num_workers=1, multiprocessing_context="fork", **{name: lambda given: given})


def test_f08_what_is_sent_depends_on_the_method_that_python_will_take(dataset, monkeypatch):
    given = {"num_workers": 1, "multiprocessing_context": "inherit", "collate_fn": lambda batch: batch}
    for decided, default, refused in [("spawn", "fork", True), ("fork", "spawn", False), (None, "forkserver", True)]:
        monkeypatch.setattr("multiprocessing.get_start_method", lambda allow_none, decided=decided: decided)
        monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda default=default: [default])
        with pytest.raises(ValueError, match="collate_fn must be picklable") if refused else nullcontext():
            loader(dataset, **given)


def test_f08_a_closed_dataset_is_refused(runtime, dataset):
    closed = opened(runtime, dataset.cache_paths)
    closed.close()
    with pytest.raises(RuntimeError, match="closed"):
        loader(closed)
