"""D7, D9: samples, single reads, and the table as frames of several libraries."""

import enum
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from support import Listed, numbered, opened, write

import dataset_rt as drt

ROWS = [(f"payload {row}".encode(), {"n": row, "f": row / 3, "t": f"é{row}", "b": row % 2 == 0}) for row in range(5)]


@pytest.fixture
def paths(runtime: drt.DatasetRuntime, tmp_path: Path) -> list[Path]:
    return write(runtime, tmp_path, Listed("a", ROWS[:3]), Listed("b", ROWS[3:]))


@pytest.fixture
def dataset(runtime: drt.DatasetRuntime, paths: list[Path]) -> drt.CachedDataset:
    return opened(runtime, paths)


def test_d07_samples_hold_bytes_dict_and_ids(dataset: drt.CachedDataset) -> None:
    samples = list(dataset)
    assert [(sample.data, sample.metadata) for sample in samples] == ROWS
    assert [sample.sample_id for sample in samples] == [0, 1, 2, 0, 1]
    # int(SHA-256(name)[:8], big endian) without its highest bit.
    assert [sample.cache_id for sample in samples][::3] == [5374906597990186442, 4477677635727087946]
    for sample in samples:
        assert [type(field) for field in sample] == [bytes, dict, int, int]
        assert list(sample.metadata) == ["b", "f", "n", "t"]
    # No two samples share a dict.
    samples[0].metadata["n"] = -1
    assert samples[1].metadata["n"] == 1


def test_d07_texts_that_come_again_are_never_mixed_up(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    """Texts of all short lengths that differ in one character at any place, in a column with few of them and one with many."""
    texts = [""]
    for length in range(1, 19):
        texts += ["a" * place + "b" + "a" * (length - place - 1) for place in range(length)] + [
            "a" * length,
            "\0" * length,
        ]
    few = texts[::30]
    choose = random.Random(3).choice
    rows = [(b"", {"few": choose(few), "many": choose(texts), "all": text}) for text in texts * 40]
    dataset = opened(runtime, write(runtime, tmp_path, Listed("a", rows)))
    assert [sample.metadata for sample in dataset] == [metadata for _, metadata in rows]


def test_d07_ids_are_unsigned_in_every_table(dataset: drt.CachedDataset) -> None:
    table = dataset.get_metadata()
    for dtype in (pl.UInt64, pl.Int64):
        dataset.update_metadata(table.with_columns(pl.col("cache_id", "sample_id").cast(dtype)))
        schema = dataset.get_metadata().schema
        assert (schema["cache_id"], schema["sample_id"], schema["weight"]) == (pl.UInt64, pl.UInt64, pl.Float64)


def test_d07_get_item_reads_any_stored_sample_and_moves_no_cursor(dataset: drt.CachedDataset) -> None:
    samples = list(dataset)
    dataset.update_metadata(dataset.get_metadata().tail(1))
    dataset.set_epoch_len(3)
    iterator = iter(dataset)
    for sample in samples:
        assert dataset.get_item(sample.cache_id, sample.sample_id) == sample
    assert [sample.metadata["n"] for sample in iterator] == [4, 4, 4]


class Id(int):
    """A subclass of int."""


class Member(enum.IntEnum):
    ZERO = 0


@pytest.mark.parametrize(
    "value", [True, 1.0, "1", None, np.int64(1), Id(1), Member.ZERO], ids=lambda v: type(v).__name__
)
def test_d07_get_item_takes_plain_ints_only(dataset: drt.CachedDataset, value: Any) -> None:
    cache_id = next(iter(dataset)).cache_id
    with pytest.raises(TypeError, match="cache_id must be an int"):
        dataset.get_item(value, 0)
    with pytest.raises(TypeError, match="sample_id must be an int"):
        dataset.get_item(cache_id, value)


@pytest.mark.parametrize("value", [-1, 3, 2**63, 2**64, 10**30])
def test_d07_unknown_ids_are_index_errors(dataset: drt.CachedDataset, value: int) -> None:
    cache_id = next(iter(dataset)).cache_id
    with pytest.raises(IndexError, match=str(value)):
        dataset.get_item(cache_id, value)
    with pytest.raises(IndexError, match=str(value)):
        dataset.get_item(value, 0)


def test_d09_table_has_the_documented_columns(dataset: drt.CachedDataset) -> None:
    table = dataset.get_metadata()
    assert dict(table.schema) == {
        "cache_id": pl.UInt64,
        "sample_id": pl.UInt64,
        "b": pl.Boolean,
        "f": pl.Float64,
        "n": pl.Int64,
        "t": pl.String,
        "weight": pl.Float64,
    }
    assert table.drop("cache_id", "sample_id", "weight").to_dicts() == [row[1] | {} for row in ROWS]
    assert table["weight"].to_list() == [1.0] * 5


def test_d09_second_call_shares_everything(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    dataset = opened(runtime, write(runtime, tmp_path, numbered("a", 200_000)))
    first = dataset.get_metadata()
    best = float("inf")
    for _ in range(20):
        started = time.perf_counter()
        second = dataset.get_metadata()
        best = min(best, time.perf_counter() - started)
    assert second is not first
    assert best < 0.001
    for name in second.columns:
        assert address(first, name) == address(second, name)


def address(frame: pl.DataFrame, name: str) -> int:
    """Where the values of a numeric column are."""
    return int(frame[name].to_numpy(allow_copy=False).__array_interface__["data"][0])


def test_d09_editing_a_frame_changes_nothing(dataset: drt.CachedDataset) -> None:
    before = dataset.get_metadata()
    edited = dataset.get_metadata()
    edited[0, "n"] = -7
    edited[1, "weight"] = 99.0
    edited.replace_column(0, pl.Series("cache_id", [0] * 5))
    edited.insert_column(0, pl.Series("new", [1] * 5))
    edited.extend(edited)
    assert dataset.get_metadata().equals(before)
    assert [sample.metadata["n"] for sample in dataset] == [0, 1, 2, 3, 4]


def test_d09_a_frame_handed_over_is_not_the_table(dataset: drt.CachedDataset) -> None:
    given = dataset.get_metadata().with_columns(extra=pl.lit(1))
    dataset.update_metadata(given)
    given[0, "extra"] = 7
    assert dataset.get_metadata()["extra"].to_list() == [1] * 5


class Stream:
    """Somebody else's table."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame,
        lambda frame: frame.to_arrow(),
        lambda frame: frame.to_arrow(compat_level=pl.CompatLevel.oldest()),
        lambda frame: pa.table(frame).to_reader(max_chunksize=1),
        lambda frame: frame.to_pandas(),
        Stream,
        lambda frame: pl.concat([frame[:1], frame[1:]], rechunk=False),
    ],
    ids=["polars", "pyarrow", "pyarrow large strings", "record batches", "pandas", "stream", "chunks"],
)
def test_d09_tables_of_other_libraries_are_taken(dataset: drt.CachedDataset, convert: Any) -> None:
    table = dataset.get_metadata()
    wanted = table.filter(pl.col("n") != 1).with_columns(weight=pl.col("n") + 0.5, extra=pl.lit("x"))
    dataset.update_metadata(convert(wanted))
    assert dataset.get_metadata().equals(wanted)
    assert [sample.metadata["n"] for sample in dataset] == [0, 2, 3, 4]


def test_d09_pandas_index_of_a_filtered_frame_is_an_extra_column(dataset: drt.CachedDataset) -> None:
    frame = dataset.get_metadata().to_pandas()
    dataset.update_metadata(frame[frame["n"] > 2])
    assert [sample.metadata["n"] for sample in dataset] == [3, 4]


def test_d09_lazy_frame_is_told_to_collect(dataset: drt.CachedDataset) -> None:
    with pytest.raises(TypeError, match=r"\.collect\(\)"):
        dataset.update_metadata(dataset.get_metadata().lazy())  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [None, 3, "table", {"a": 1}, [1], pl.Series([1]).to_list(), pl.DataFrame])
def test_d09_what_is_no_table_is_a_type_error(dataset: drt.CachedDataset, value: Any) -> None:
    with pytest.raises(TypeError, match="metadata must be a polars DataFrame"):
        dataset.update_metadata(value)
    assert len(dataset) == 5


def test_d09_error_of_a_stream_is_an_error_of_the_update(dataset: drt.CachedDataset) -> None:
    table = dataset.get_metadata().to_arrow()

    def batches() -> Any:
        yield from table.to_batches()
        raise LookupError("gone")

    reader = pa.RecordBatchReader.from_batches(table.schema, batches())
    with pytest.raises(ValueError, match="gone"):
        dataset.update_metadata(reader)
    assert len(dataset) == 5


def test_d09_older_names_do_the_same(dataset: drt.CachedDataset) -> None:
    table = dataset.samples_metadata()
    assert table.equals(dataset.get_metadata())
    dataset.set_samples_metadata(table.head(2))
    assert dataset.samples_metadata().equals(table.head(2))
