"""What loaders export: where it is, how long it stays, and who may remove what others left."""

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile

import polars as pl
import pytest

pytest.importorskip("torch.utils.data")

from support import files_end_at, numbered, opened, write
from torch_support import loader

import dataset_rt as drt
from dataset_rt.torch.artifacts import PREFIX, Owner


@pytest.fixture
def dataset(runtime, tmp_path):
    return opened(runtime, write(runtime, tmp_path, numbered("a", 5)))


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return directory


def test_f08_work_dir_keeps_a_directory_for_each_loader(runtime, dataset, tmp_path):
    work_dir = tmp_path / "work"
    work_dir.mkdir()
    loaders = [loader(dataset, work_dir=work_dir), loader(dataset, work_dir=str(work_dir), shuffle=False)]
    assert [sum(map(len, each)) for each in loaders] == [5, 5]
    del loaders
    gc.collect()
    kept = list(work_dir.iterdir())
    assert len(kept) == 2
    for directory in kept:
        assert sorted(file.name for file in directory.iterdir()) == ["dataset.json", "metadata.arrow", "population.bin"]
        config = json.loads((directory / "dataset.json").read_text())
        assert config == {
            "version": 2,
            "cache_paths": [str(path) for path in dataset.cache_paths],
            "reader_config": dataset.reader_config.model_dump(),
            "num_workers": 1,
            "epoch_len": 5,
            "row_count": 5,
            "metadata_file": "metadata.arrow",
        }
        assert pl.read_ipc(directory / "metadata.arrow").equals(dataset.get_metadata())
        again = drt.CachedDataset.from_config(directory / "dataset.json")
        assert again.get_metadata().equals(dataset.get_metadata())
        assert list(again) == list(opened(runtime, dataset.cache_paths))


def test_f08_a_managed_directory_lives_as_long_as_loader_and_iterators(dataset, temporary):
    built = loader(dataset)
    [directory] = temporary.iterdir()
    assert directory.name.startswith(f"{PREFIX}~")
    assert str(os.getpid()) in directory.name.split("~")
    assert directory.stat().st_mode & 0o777 == 0o700
    iterator = iter(built)
    next(iterator)
    del built
    gc.collect()
    assert directory.exists()
    assert len(list(iterator)) == 4
    del iterator
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_f08_nothing_stays_of_a_loader_that_did_not_come_to_be(dataset, temporary):
    with files_end_at(200), pytest.raises(OSError, match="cannot write"):
        loader(dataset)
    assert list(temporary.iterdir()) == []


def test_f08_a_forked_child_does_not_remove_what_its_parent_uses(dataset, temporary):
    built = loader(dataset)
    child = os.fork()
    if child == 0:
        del built
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list(temporary.iterdir())) == 1
    assert sum(map(len, built)) == 5


def test_f08_what_a_killed_process_left_is_swept_by_the_next_loader(dataset, temporary):
    program = """
import os, signal, sys
import dataset_rt as drt
with drt.DatasetRuntime(num_workers=1) as runtime:
    dataset = runtime.cached_dataset([sys.argv[1]], reader_config=drt.ReaderConfig(seed=1))
    loader = dataset.to_torch_dataloader(num_workers=0, verbose=False)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": str(temporary)}
    killed = subprocess.run([sys.executable, "-c", program, str(dataset.cache_paths[0])], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    [left] = temporary.iterdir()
    assert Owner.of_directory(left.name).is_dead(Owner.current())
    foreign = temporary / "dataset_rt-loader~notes"
    foreign.mkdir()
    living = loader(dataset)
    built = loader(dataset)
    assert not left.exists()
    assert foreign.exists()
    assert len(list(temporary.iterdir())) == 3
    del living, built


def test_f08_in_doubt_an_owner_lives():
    me = Owner.current()
    assert Owner.of_directory(me.directory_name()) == me
    assert me.directory_name() != me.directory_name()

    def another(**changed):
        return Owner(**{name: changed.get(name, getattr(me, name)) for name in Owner.__slots__})

    assert not me.is_dead(me)
    assert another(started="1").is_dead(me)
    assert another(boot="before").is_dead(me)
    assert not another(started="1", namespace="2").is_dead(me)
    assert not another(started="1", host="elsewhere").is_dead(me)
    assert not another(boot="before", host="elsewhere").is_dead(me)
    assert not another(boot="unknown", started="1").is_dead(me)
    assert Owner.of_directory("dataset_rt-loader~a~b~c~d~e~f") is None
    assert Owner.of_directory("tmp") is None
