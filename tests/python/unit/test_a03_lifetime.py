"""A3: what objects say of themselves, and how they end."""

import contextlib
from pathlib import Path

import pytest
from support import Listed, native_threads, numbered, numbers, opened, write

import dataset_rt as drt


def mappings(folder: Path) -> list[str]:
    """Files below `folder` that are mapped or open."""
    maps = [line.split(maxsplit=5)[5] for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line]
    files = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            files.append(str(descriptor.readlink()))
    return [name for name in maps + files if name.startswith(str(folder.resolve()))]


def test_a03_reprs_tell_what_matters(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    dataset = opened(runtime, write(runtime, tmp_path, numbered("a", 3)))
    assert repr(runtime) == "DatasetRuntime(num_workers=2)"
    assert str(tmp_path / "a") in repr(dataset)
    assert "epoch_len=3" in repr(dataset)
    assert "seed=7" in repr(dataset)
    assert "2 of 3" in repr(after_one(dataset))
    dataset.close()
    runtime.close()
    assert repr(dataset) == "CachedDataset(closed)"
    assert repr(runtime) == "DatasetRuntime(num_workers=2, closed)"


def after_one(dataset: drt.CachedDataset) -> object:
    iterator = iter(dataset)
    next(iterator)
    return iterator


def test_a03_closed_runtime_refuses_and_closes_again(tmp_path: Path) -> None:
    with drt.DatasetRuntime(num_workers=1) as runtime:
        [path] = write(runtime, tmp_path, numbered("a", 3))
    runtime.close()
    config = drt.ReaderConfig(seed=1)
    for call in (
        lambda: runtime.write_cache(numbered("b", 1), tmp_path),
        lambda: runtime.cached_dataset([path], reader_config=config),
        lambda: runtime.from_cache_sources(numbered("a", 1), tmp_path, reader_config=config),
        runtime.__enter__,
    ):
        with pytest.raises(RuntimeError, match="closed"):
            call()
    assert not (tmp_path / "b").exists()


def test_a03_closed_dataset_refuses_and_closes_again(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    with opened(runtime, write(runtime, tmp_path, numbered("a", 3))) as dataset:
        table = dataset.get_metadata()
    dataset.close()
    for call in (
        lambda: iter(dataset),
        lambda: len(dataset),
        lambda: dataset.get_item(0, 0),
        lambda: dataset.set_epoch_len(1),
        dataset.get_metadata,
        lambda: dataset.update_metadata(table),
        dataset.__enter__,
    ):
        with pytest.raises(RuntimeError, match="closed"):
            call()
    assert dataset.cache_paths == [tmp_path / "a"]


def test_a03_datasets_outlive_their_runtime(tmp_path: Path) -> None:
    before = native_threads()
    with drt.DatasetRuntime(num_workers=3) as runtime:
        dataset = opened(runtime, write(runtime, tmp_path, numbered("a", 200)))
    assert len(native_threads()) == len(before) + 3
    assert numbers(dataset) == list(range(200))
    dataset.close()
    assert native_threads() == before


def test_a03_nothing_stays_once_the_last_iterator_is_gone(tmp_path: Path) -> None:
    before = native_threads()
    runtime = drt.DatasetRuntime(num_workers=2)
    dataset = opened(runtime, write(runtime, tmp_path, numbered("a", 200)))
    iterator = iter(dataset)
    next(iterator)
    assert mappings(tmp_path) != []
    runtime.close()
    dataset.close()
    assert numbers(iterator) == list(range(1, 200))
    del iterator
    assert native_threads() == before
    assert mappings(tmp_path) == []


def test_a03_collected_objects_need_no_close(tmp_path: Path) -> None:
    before = native_threads()
    runtime = drt.DatasetRuntime(num_workers=2)
    dataset = opened(runtime, write(runtime, tmp_path, numbered("a", 3)))
    del runtime, dataset
    assert native_threads() == before
    assert mappings(tmp_path) == []


def anonymous_kib() -> int:
    """Memory of this process that belongs to no file."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))


def test_a03_ten_thousand_iterators_leave_nothing_behind(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    large = Listed("large", [(bytes(100_000), {"number": row}) for row in range(20)])
    paths = write(runtime, tmp_path, numbered("small", 1000), large)
    datasets = [
        opened(runtime, paths[:1]),
        opened(runtime, paths[:1], shuffle=True),
        opened(runtime, paths, shuffle=True),
    ]

    def take(count: int) -> None:
        for number in range(count):
            iterator = iter(datasets[number % 3])
            for _ in range(number % 4):
                next(iterator)

    def held() -> tuple[int, int]:
        return len(list(Path("/proc/self/task").iterdir())), len(list(Path("/proc/self/fd").iterdir()))

    take(500)
    before, memory = held(), anonymous_kib()
    take(10_000)
    assert held() == before
    # An iterator alone takes more than 100 bytes: 10,000 of them would be seen.
    assert anonymous_kib() - memory < 1000


def test_a03_datasets_are_not_constructed_directly() -> None:
    with pytest.raises(TypeError, match=r"DatasetRuntime\.cached_dataset"):
        drt.CachedDataset()
