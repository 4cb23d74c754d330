"""The iterable view: sized, picklable as a length, and only for the main process."""

import pickle
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("torch.utils.data")

from support import numbered, opened, write
from torch.utils.data import DataLoader, IterableDataset, Subset, random_split

import dataset_rt as drt


@pytest.fixture
def dataset(runtime, tmp_path):
    return opened(runtime, write(runtime, tmp_path, numbered("a", 12)), shuffle=True)


def test_f02_the_view_is_sized_and_yields_what_the_dataset_yields(runtime, dataset):
    twin = opened(runtime, dataset.cache_paths, shuffle=True)
    view = dataset.to_torch_iterable_dataset()
    assert isinstance(view, drt.SizedTorchIterableDataset)
    assert isinstance(view, IterableDataset)
    assert len(view) == 12
    for _ in range(2):
        assert list(DataLoader(view, batch_size=None)) == list(twin)
    dataset.set_epoch_len(5)
    assert len(view) == 5
    assert len(list(view)) == 5
    assert repr(view) == f"TorchIterableDataset({dataset!r})"


def test_f02_default_collation_makes_batches_of_named_tuples(dataset):
    [batch] = DataLoader(dataset.to_torch_iterable_dataset(), batch_size=12)
    assert isinstance(batch, drt.CachedSample)
    assert batch.metadata["number"].tolist() == batch.sample_id.tolist()
    assert list(batch.data) == [row.to_bytes(8, "little") for row in batch.sample_id.tolist()]


def test_f02_a_part_by_index_is_refused_in_words(dataset):
    view = dataset.to_torch_iterable_dataset()
    for part in [Subset(view, [0, 1]), *random_split(view, [6, 6])]:
        with pytest.raises(TypeError, match=r"to_torch_iterable_dataset\(\) .*no sample with an index.*get_item"):
            part[0]


def test_f02_a_pickled_copy_knows_its_length_only(dataset):
    view = dataset.to_torch_iterable_dataset()
    dataset.set_epoch_len(7)
    copy = pickle.loads(pickle.dumps(view))
    assert isinstance(copy, drt.SizedTorchIterableDataset)
    assert len(copy) == 7
    assert len(pickle.loads(pickle.dumps(copy))) == 7
    with pytest.raises(RuntimeError, match=r"copy made by pickle.*to_torch_dataloader"):
        iter(copy)
    assert "copy of 7 samples" in repr(copy)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_f02_loading_workers_are_refused_under_every_start_method(dataset, method):
    refused = DataLoader(
        dataset.to_torch_iterable_dataset(), batch_size=None, num_workers=1, multiprocessing_context=method
    )
    with pytest.raises(RuntimeError, match=r"handed to a loading worker.*to_torch_dataloader"):
        next(iter(refused))


def test_f01_without_torch_both_adapters_say_how_to_install_it(tmp_path):
    program = """
        import sys
        from pathlib import Path
        sys.modules["torch"] = None
        import dataset_rt as drt
        from support import numbered, opened, write
        with drt.DatasetRuntime(num_workers=1) as runtime:
            dataset = opened(runtime, write(runtime, Path(sys.argv[1]), numbered("a", 3)))
            for adapter in (dataset.to_torch_iterable_dataset, dataset.to_torch_dataloader):
                try:
                    adapter()
                except ImportError as error:
                    assert "pip install" in str(error) and error.name == "torch", error
                else:
                    raise AssertionError(adapter)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(tmp_path)], check=True, env=child_environment())


def test_f01_torch_is_imported_only_when_an_adapter_is_called(tmp_path):
    program = """
        import sys
        from pathlib import Path
        import dataset_rt as drt
        from support import numbered, opened, write
        drt.SizedTorchIterableDataset
        with drt.DatasetRuntime(num_workers=1) as runtime:
            dataset = opened(runtime, write(runtime, Path(sys.argv[1]), numbered("a", 3)))
            assert "torch" not in sys.modules
            view = dataset.to_torch_iterable_dataset()
            assert "torch" in sys.modules
            assert isinstance(view, drt.SizedTorchIterableDataset)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(tmp_path)], check=True, env=child_environment())


def child_environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
