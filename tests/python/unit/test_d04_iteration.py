"""D4, D5, D6, D8, D11: windows, draws, and what iterators do not see."""

import itertools
import re
import resource
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support import Listed, break_record, numbered, numbers, opened, write

import dataset_rt as drt


@pytest.fixture
def paths(runtime: drt.DatasetRuntime, tmp_path: Path) -> list[Path]:
    """Two caches with five rows together."""
    return write(runtime, tmp_path, numbered("a", 3), Listed("b", [(b"", {"number": row}) for row in (3, 4)]))


def stream(dataset: drt.CachedDataset, *sizes: int) -> list[list[int]]:
    """Successive windows of these sizes."""
    windows = []
    for size in sizes:
        dataset.set_epoch_len(size)
        windows.append(numbers(dataset))
    return windows


def test_d04_iter_gives_the_native_iterator(runtime: drt.DatasetRuntime, paths: list[Path]) -> None:
    iterator = iter(opened(runtime, paths))
    assert type(iterator).__module__ == "dataset_rt._native"
    assert iter(iterator) is iterator


@pytest.mark.parametrize("shuffle", [False, True])
def test_d04_window_is_reserved_at_iter(runtime: drt.DatasetRuntime, paths: list[Path], shuffle: bool) -> None:
    expected = stream(opened(runtime, paths, shuffle=shuffle), 2, 2, 2, 2)
    dataset = opened(runtime, paths, shuffle=shuffle)
    dataset.set_epoch_len(2)
    first, unstarted, third = iter(dataset), iter(dataset), iter(dataset)
    started = next(iter(dataset))
    assert numbers(third) == expected[2]
    assert numbers(first) == expected[0]
    del unstarted
    assert started.metadata["number"] == expected[3][0]


def test_d04_running_iterators_never_see_edits(runtime: drt.DatasetRuntime, paths: list[Path]) -> None:
    dataset = opened(runtime, paths)
    table = dataset.get_metadata()
    unstarted, started = iter(dataset), iter(dataset)
    next(started)
    dataset.set_epoch_len(2)
    dataset.update_metadata(table.filter(pl.col("number") == 4))
    assert numbers(unstarted) == [0, 1, 2, 3, 4]
    assert numbers(started) == [1, 2, 3, 4]
    assert numbers(dataset) == [4]


def test_d04_exhausted_iterator_stays_exhausted(runtime: drt.DatasetRuntime, paths: list[Path]) -> None:
    iterator = iter(opened(runtime, paths))
    assert len(list(iterator)) == 5
    assert list(iterator) == []
    with pytest.raises(StopIteration):
        next(iterator)


def test_d05_ordered_windows_are_cyclic(runtime: drt.DatasetRuntime, paths: list[Path]) -> None:
    assert stream(opened(runtime, paths), 2, 2, 2, 7) == [[0, 1], [2, 3], [4, 0], [1, 2, 3, 4, 0, 1, 2]]


def test_d05_order_follows_the_table_with_its_duplicates(runtime: drt.DatasetRuntime, paths: list[Path]) -> None:
    dataset = opened(runtime, paths)
    table = dataset.get_metadata()
    dataset.update_metadata(pl.concat([table[4], table[0], table[4], table[2]]))
    assert len(dataset) == 4
    assert numbers(dataset) == [4, 0, 4, 2]


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 3.0, 0.5, 10.0]])
def test_d05_splitting_a_shuffled_stream_changes_nothing(
    runtime: drt.DatasetRuntime, paths: list[Path], weights: list[float] | None
) -> None:
    def dataset() -> drt.CachedDataset:
        fresh = opened(runtime, paths, shuffle=True)
        if weights is not None:
            fresh.update_metadata(fresh.get_metadata().with_columns(weight=pl.Series(weights)))
        return fresh

    [whole] = stream(dataset(), 1000)
    for sizes in ([1] * 1000, [999, 1], [1, 999], [7, 64, 65, 128, 300, 436]):
        assert list(itertools.chain(*stream(dataset(), *sizes))) == whole


@pytest.mark.parametrize("shuffle", [False, True])
def test_d06_threads_and_prefetch_change_nothing(paths: list[Path], shuffle: bool) -> None:
    results = []
    for workers, prefetch_size in [(1, 1), (1, 64), (3, 2), (8, 2**63 - 1)]:
        with drt.DatasetRuntime(num_workers=workers) as runtime:
            dataset = opened(runtime, paths, shuffle=shuffle, prefetch_size=prefetch_size)
            results.append(stream(dataset, 500, 33))
    assert all(result == results[0] for result in results)


def test_d06_seed_decides_the_stream(runtime: drt.DatasetRuntime, paths: list[Path]) -> None:
    def draws(seed: int) -> list[int]:
        return stream(opened(runtime, paths, shuffle=True, seed=seed), 200)[0]

    assert draws(1) == draws(1)
    seeds = [0, 1, *(1 << bit for bit in range(1, 64)), 2**64 - 1]
    assert len({tuple(draws(seed)) for seed in seeds}) == len(seeds)


def test_d06_equal_weights_draw_uniformly_however_they_came(runtime: drt.DatasetRuntime, paths: list[Path]) -> None:
    fresh = opened(runtime, paths, shuffle=True)
    table = fresh.get_metadata()
    [expected] = stream(fresh, 300)
    for weight in (pl.lit(1.0), pl.lit(0.3), pl.lit(7)):
        dataset = opened(runtime, paths, shuffle=True)
        dataset.update_metadata(table.with_columns(weight=weight))
        assert stream(dataset, 300) == [expected]


def test_d06_weights_decide_frequencies(runtime: drt.DatasetRuntime, paths: list[Path]) -> None:
    dataset = opened(runtime, paths, shuffle=True)
    weights = [1.0, 2.0, 4.0, 8.0, 85.0]
    dataset.update_metadata(dataset.get_metadata().with_columns(weight=pl.Series(weights)))
    count = 100_000
    counts = Counter(stream(dataset, count)[0])
    chi_square = sum((counts[row] - count * w / 100) ** 2 / (count * w / 100) for row, w in enumerate(weights))
    # The 99.9 % point of chi-square with four degrees of freedom; the draws are the same at every run.
    assert chi_square < 18.47


@pytest.mark.parametrize("size", [8, 300_000])
@pytest.mark.parametrize("algo", ["none", "lz4"])
def test_d08_failing_sample_does_not_end_the_iterator(
    runtime: drt.DatasetRuntime, tmp_path: Path, size: int, algo: Any
) -> None:
    compression = drt.ShardCompression(algo=algo)
    [path] = write(runtime, tmp_path, numbered("a", 40, size=size), shard_compression=compression)
    dataset = opened(runtime, [path])
    cache_id = next(iter(dataset)).cache_id
    for row in (0, 17, 39):
        break_record(path, row)
    dataset = opened(runtime, [path])
    iterator = iter(dataset)
    for row in range(40):
        if row in (0, 17, 39):
            with pytest.raises(ValueError, match=f"sample {row} of cache {cache_id} in {re.escape(str(path))}"):
                next(iterator)
        else:
            assert next(iterator).sample_id == row
    assert next(iterator, None) is None
    with pytest.raises(ValueError, match=f"sample 17 of cache {cache_id}"):
        dataset.get_item(cache_id, 17)
    assert dataset.get_item(cache_id, 18).sample_id == 18


def test_d08_a_batch_is_one_error_or_all_its_samples(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 300))
    for row in (7, 8, 200):
        break_record(path, row)
    iterator = iter(opened(runtime, [path]))
    expected = [list(range(start, min(start + 9, 300))) for start in range(0, 300, 9)]
    for rows in expected:
        broken = [row for row in rows if row in (7, 8, 200)]
        if broken:
            with pytest.raises(ValueError, match=f"sample {broken[0]} of cache"):
                iterator.next_batch(9)
        else:
            assert [sample.sample_id for sample in iterator.next_batch(9)] == rows
    assert iterator.next_batch(9) == []


def test_d04_batches_and_samples_take_from_one_window(runtime: drt.DatasetRuntime, paths: list[Path]) -> None:
    iterator = iter(opened(runtime, paths))
    assert iterator.next_batch(0) == []
    assert next(iterator).metadata["number"] == 0
    assert numbers(iterator.next_batch(2)) == [1, 2]
    assert numbers(iterator.next_batch(2**64 - 1)) == [3, 4]
    assert iterator.next_batch(1) == []


def test_d11_epoch_len_follows_and_resets(runtime: drt.DatasetRuntime, paths: list[Path]) -> None:
    dataset = opened(runtime, paths)
    assert len(dataset) == 5
    for size in (1, 12, 2**63 - 1):
        dataset.set_epoch_len(size)
        assert len(dataset) == size
    dataset.update_metadata(dataset.get_metadata().head(3))
    assert len(dataset) == 3
    assert numbers(dataset) == [0, 1, 2]
    dataset.set_epoch_len(2)
    assert (numbers(dataset), numbers(dataset)) == ([0, 1], [2, 0])


def test_d11_update_starts_cursor_and_stream_over(runtime: drt.DatasetRuntime, paths: list[Path]) -> None:
    for shuffle in (False, True):
        dataset = opened(runtime, paths, shuffle=shuffle)
        first = numbers(dataset)
        dataset.update_metadata(dataset.get_metadata())
        assert numbers(dataset) == first


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_d11_epoch_len_is_a_plain_int(runtime: drt.DatasetRuntime, paths: list[Path], value: Any) -> None:
    dataset = opened(runtime, paths)
    with pytest.raises(TypeError, match="epoch_len must be an int"):
        dataset.set_epoch_len(value)
    assert len(dataset) == 5


@pytest.mark.parametrize("value", [0, -1, 2**63, 2**100])
def test_d11_epoch_len_is_in_range(runtime: drt.DatasetRuntime, paths: list[Path], value: int) -> None:
    dataset = opened(runtime, paths)
    with pytest.raises(ValueError, match=rf"epoch_len must be 1 \.\.\. 2\^63-1, found {value}$"):
        dataset.set_epoch_len(value)
    assert len(dataset) == 5


@pytest.mark.skipif(sys.platform != "linux", reason="counts what only Linux counts")
def test_d04_large_samples_are_read_into_memory_that_was_used_before(
    runtime: drt.DatasetRuntime, tmp_path: Path
) -> None:
    megabytes = 4
    dataset = opened(runtime, write(runtime, tmp_path, numbered("a", 12, size=megabytes << 20)))

    def fresh_pages() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in dataset:
            pass
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    fresh_pages()
    assert min(fresh_pages() for _ in range(5)) < 12 * megabytes
