"""D10: which tables are taken, what survives in them, and what is refused in which words."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support import Listed, numbered, numbers, opened, write

import dataset_rt as drt

ROWS = 5


@pytest.fixture
def dataset(runtime: drt.DatasetRuntime, tmp_path: Path) -> drt.CachedDataset:
    return opened(runtime, write(runtime, tmp_path, numbered("a", 3), numbered("b", 2)))


def column(values: list[Any], dtype: Any) -> pl.Series:
    return pl.Series("extra", values, dtype=dtype)


TEXTS = ["a", "b", "a", None, "c"]
COUNTS = [1, 2, None, -4, 5]
EXTRAS = [
    *(column(COUNTS, dtype) for dtype in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Float16, pl.Float32)),
    *(column([1, 2, None, 4, 5], dtype) for dtype in (pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)),
    column([float("nan"), float("-inf"), None, -0.0, 5e-324], pl.Float64),
    column([True, None, False, True, True], pl.Boolean),
    column(["a", None, "", "é" * 50, "\0"], pl.String),
    column([b"a", None, b"", b"\xff" * 50, b"\0"], pl.Binary),
    column([Decimal("1.50"), Decimal("-2.25"), None, Decimal(0), Decimal(10) ** 31], pl.Decimal(38, 6)),
    column(COUNTS, pl.Date),
    column([dt.time(1, 2, 3, 4), None, dt.time(), dt.time.max, None], pl.Time),
    *(column(COUNTS, pl.Datetime(unit, zone)) for unit in ("ms", "us", "ns") for zone in (None, "America/New_York")),
    *(column(COUNTS, pl.Duration(unit)) for unit in ("ms", "us", "ns")),
    column(TEXTS, pl.Categorical),
    column(TEXTS, pl.Categorical(pl.Categories("own", "test", pl.UInt8))),
    column(TEXTS, pl.Enum(["c", "b", "a", "unused"])),
    column([None] * ROWS, pl.Null),
    column([[1], [], None, [1, None], [3]], pl.List(pl.Int16)),
    column([["a", "b"], [], None, ["c"], ["a"]], pl.List(pl.Categorical)),
    column([["a", "b"], [], None, ["c"], ["a"]], pl.List(pl.Enum(["c", "b", "a"]))),
    column([[], [None], None, [None, None], []], pl.List(pl.Null)),
    column([[[1, 2], [3, 4]], None, [[1, 2], None], [[5, 6], [7, None]], [[0, 0], [0, 0]]], pl.Array(pl.Int32, (2, 2))),
    column([[None, None]] * ROWS, pl.Array(pl.Null, 2)),
    column(
        [{"a": 1, "b": "t"}, None, {"a": None, "b": None}] + [{"a": 3, "b": ""}] * 2,
        pl.Struct({"a": pl.Int8, "b": pl.String}),
    ),
    column([{"a": None, "b": 1}] * ROWS, pl.Struct({"a": pl.Null, "b": pl.Int8})),
    column([{}] * ROWS, pl.Struct([])),
    column(
        [[{"a": [1, None], "b": {"c": b"q"}}], [], None, [{"a": None, "b": None}], [None]],
        pl.List(pl.Struct({"a": pl.Array(pl.Int8, 2), "b": pl.Struct({"c": pl.Binary})})),
    ),
]


def contents(frame: pl.DataFrame) -> list[tuple[pa.DataType, Any]]:
    """Types and bit patterns of all columns."""
    table = frame.rechunk().to_arrow()
    return [(column.type, repr(column.to_pylist())) for column in table.columns]


@pytest.mark.parametrize("extra", EXTRAS, ids=lambda extra: str(extra.dtype)[:60])
@pytest.mark.parametrize("rechunk", [True, False], ids=["whole", "chunks"])
def test_d10_extra_columns_survive(dataset: drt.CachedDataset, extra: pl.Series, rechunk: bool) -> None:
    given = dataset.get_metadata().with_columns(extra)
    given = pl.concat([given[:2], given[2:]], rechunk=rechunk)
    # Handed over twice: as it was given, and as it came back.
    for table in (given, None):
        dataset.update_metadata(dataset.get_metadata() if table is None else table)
        after = dataset.get_metadata()
        assert after.schema == given.schema
        assert contents(after) == contents(given)
    assert numbers(dataset) == [0, 1, 2, 0, 1]


def test_d10_floats_keep_every_bit(dataset: drt.CachedDataset) -> None:
    bits = pl.Series("bits", [0x7FF8000000000001, 0xFFF0000000000001, 1 << 63, 1, 0x7FF0000000000000], dtype=pl.UInt64)
    dataset.update_metadata(dataset.get_metadata().with_columns(extra=pl.Series(bits.to_numpy().view("float64"))))
    assert dataset.get_metadata()["extra"].to_numpy().view("uint64").tolist() == bits.to_list()


@pytest.mark.parametrize(
    "extra",
    [
        pl.Series([object()] * ROWS, dtype=pl.Object),
        pl.Series([1] * ROWS, dtype=pl.Int128),
        pl.Series([1] * ROWS, dtype=pl.UInt128),
        pl.Series([[1]] * ROWS, dtype=pl.List(pl.Int128)),
        pl.Series([{"a": 1}] * ROWS, dtype=pl.Struct({"a": pl.Int128})),
        pl.Series([[]] * ROWS, dtype=pl.Array(pl.Int8, 0)),
    ],
    ids=lambda extra: str(extra.dtype),
)
def test_d10_columns_that_arrow_cannot_carry_are_refused_by_name(dataset: drt.CachedDataset, extra: pl.Series) -> None:
    before = dataset.get_metadata()
    with pytest.raises(ValueError, match=r'column "odd" has a type that .*; drop or cast it'):
        dataset.update_metadata(before.with_columns(odd=extra))
    assert dataset.get_metadata().equals(before)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (pl.Series(["1"] * ROWS), "string"),
        (pl.Series(["1"] * ROWS, dtype=pl.Categorical), "categorical"),
        (pl.Series([1] * ROWS, dtype=pl.Duration("us")), "duration"),
        (pl.Series([1] * ROWS, dtype=pl.Datetime("us", "UTC")), "datetime"),
        (pl.Series([1] * ROWS, dtype=pl.Date), "date"),
        (pl.Series([b"1"] * ROWS), "binary"),
        (pl.Series([[1]] * ROWS, dtype=pl.List(pl.Int16)), "list of int16"),
        (pl.Series([["1", "2"]] * ROWS, dtype=pl.Array(pl.String, 2)), "array of 2 string"),
        (pl.Series([{"a": 1}] * ROWS), "struct"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_d10_types_are_told_in_plain_words(dataset: drt.CachedDataset, values: pl.Series, name: str) -> None:
    with pytest.raises(ValueError, match=rf'column "weight": expected a numeric type, found {name}; cast the column$'):
        dataset.update_metadata(dataset.get_metadata().with_columns(weight=values))


def test_d10_foreign_types_are_told_in_plain_words(dataset: drt.CachedDataset) -> None:
    extra = pa.RunEndEncodedArray.from_arrays([2, ROWS], ["a", "b"])
    with pytest.raises(ValueError, match=r"no Polars column can have \(run-end encoded string\); drop or cast it"):
        dataset.update_metadata(dataset.get_metadata().to_arrow().append_column("odd", extra))


class Exporting:
    """Something that hands over what it was given in the place of an Arrow stream."""

    def __init__(self, exported: Any) -> None:
        self.exported = exported

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        return self.exported


@pytest.mark.parametrize(
    "exported", [None, 5, pa.array([1]).__arrow_c_array__()[1]], ids=["None", "int", "another capsule"]
)
def test_d10_what_exports_no_stream_is_a_type_error(dataset: drt.CachedDataset, exported: Any) -> None:
    found = rf"expected an Arrow stream from .*Exporting.__arrow_c_stream__, found {type(exported).__name__}; pass a"
    with pytest.raises(TypeError, match=found):
        dataset.update_metadata(Exporting(exported))


def test_d10_export_that_cannot_be_called_is_a_type_error(dataset: drt.CachedDataset) -> None:
    odd: Any = type("Odd", (), {"__arrow_c_stream__": 5})()
    with pytest.raises(TypeError, match=r"expected an Arrow stream from .*, found int; pass a"):
        dataset.update_metadata(odd)


@pytest.mark.parametrize("of", ["polars", "pyarrow"])
def test_d10_single_column_is_a_type_error(dataset: drt.CachedDataset, of: str) -> None:
    frame = dataset.get_metadata()
    column: Any = frame["weight"] if of == "polars" else frame.to_arrow()["weight"]
    with pytest.raises(TypeError, match=r"found a single column \(.*(Series|ChunkedArray)\); pass the whole frame"):
        dataset.update_metadata(column)


FOREIGN = [
    pa.array([(1, 2, 3)] * ROWS, type=pa.month_day_nano_interval()),
    pa.array([1] * ROWS, type=pa.decimal256(60, 2)),
    pa.array([1] * ROWS, type=pa.decimal32(5, 0)),
    pa.array([[1]] * ROWS, type=pa.list_view(pa.int32())),
    pa.RunEndEncodedArray.from_arrays([2, ROWS], ["a", "b"]),
    pa.UnionArray.from_sparse(pa.array([0] * ROWS, pa.int8()), [pa.array([1] * ROWS)]),
    pa.array([[[]]] * ROWS, type=pa.list_(pa.list_(pa.int32(), 0))),
]


@pytest.mark.parametrize("extra", FOREIGN, ids=lambda extra: str(extra.type))
def test_d10_columns_that_polars_cannot_hold_are_refused_by_name(dataset: drt.CachedDataset, extra: pa.Array) -> None:
    before = dataset.get_metadata()
    with pytest.raises(ValueError, match=r'column "odd" has a type that no Polars column can have .*; drop or cast it'):
        dataset.update_metadata(before.to_arrow().append_column("odd", extra))
    assert dataset.get_metadata().equals(before)


@pytest.mark.parametrize(
    ("extra", "dtype"),
    [
        (pa.array([1] * ROWS).dictionary_encode(), pl.Int64),
        (pa.array(["a"] * ROWS, type=pa.large_string()).dictionary_encode(), pl.Categorical),
        (pa.array([b"ab"] * ROWS, type=pa.binary(2)), pl.Binary),
        (pa.array([1] * ROWS, type=pa.timestamp("s", "Asia/Tokyo")), pl.Datetime("ms", "Asia/Tokyo")),
        (pa.array([1] * ROWS, type=pa.time32("s")), pl.Time),
        (pa.array([[("k", 1)]] * ROWS, type=pa.map_(pa.string(), pa.int8())), pl.Map(pl.String, pl.Int8)),
        (pa.nulls(ROWS), pl.Null),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_d10_other_arrow_types_come_back_as_polars_reads_them(
    dataset: drt.CachedDataset, extra: pa.Array, dtype: Any
) -> None:
    dataset.update_metadata(dataset.get_metadata().to_arrow().append_column("extra", extra))
    after = dataset.get_metadata()["extra"]
    assert after.dtype == dtype
    assert after.equals(pl.Series(pa.chunked_array([extra])))


def test_d10_pandas_frames_of_any_backend_are_taken(dataset: drt.CachedDataset) -> None:
    table = dataset.get_metadata()
    frame = table.to_pandas()
    extras = {
        "category": pd.Categorical(["x", "y", "x", "y", "z"]),
        "moment": pd.date_range("2024-03-30", periods=ROWS, tz="Europe/Berlin"),
        "object": pd.Series(["q", None, "r", "s", "t"], dtype=object),
        "nullable": pd.array([1, None, 3, 4, 5], dtype="Int16"),
    }
    for converted in (
        frame,
        frame.astype({"cache_id": "UInt64", "sample_id": "Int64", "weight": "Float64"}),
        table.to_pandas(use_pyarrow_extension_array=True),
    ):
        dataset.update_metadata(converted.assign(**extras)[::-1].reset_index(drop=True))
        after = dataset.get_metadata()
        assert after.select(table.columns).equals(table.reverse())
        assert after["category"].to_list() == ["x", "y", "x", "y", "z"][::-1]
        assert after["moment"].dtype.time_zone == "Europe/Berlin"  # type: ignore[attr-defined]
        assert after["object"].to_list() == ["q", None, "r", "s", "t"][::-1]
        assert after["nullable"].to_list() == [5, 4, 3, None, 1]
        assert numbers(dataset) == [1, 0, 2, 1, 0]


INTEGERS = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_d10_ids_of_any_integer_type(dataset: drt.CachedDataset, dtype: Any) -> None:
    table = dataset.get_metadata()
    dataset.update_metadata(table.with_columns(pl.col("sample_id").cast(dtype))[[4, 2]])
    assert numbers(dataset) == [1, 2]
    assert dataset.get_metadata().schema["sample_id"] == pl.UInt64


WEIGHTS = [*INTEGERS, pl.Float16, pl.Float32, pl.Float64, pl.Decimal(9, 3)]


@pytest.mark.parametrize("dtype", WEIGHTS, ids=str)
def test_d10_weights_of_any_numeric_type(dataset: drt.CachedDataset, dtype: Any) -> None:
    dataset.update_metadata(dataset.get_metadata().with_columns(weight=pl.Series([1, 2, 3, 4, 5]).cast(dtype)))
    assert dataset.get_metadata()["weight"].to_list() == [1.0, 2.0, 3.0, 4.0, 5.0]


REFUSALS: list[tuple[Any, str]] = [
    (
        pl.Series("weight", [1.0, 1.0, 0.0, 1.0, 1.0]),
        r'column "weight", row 2: .*found 0; .*filter\(pl\.col\("weight"\) > 0\)',
    ),
    (pl.Series("weight", [1, 1, 1, 0, 1]), r'column "weight", row 3: .*found 0; .*filter\(pl\.col\("weight"\) > 0\)'),
    (
        pl.Series("weight", [1.0, -2.5, 1.0, 1.0, 1.0]),
        r'column "weight", row 1: expected a positive finite number, found -2\.5; shift or clip',
    ),
    (pl.Series("weight", [1.0] * 4 + [float("inf")]), r'column "weight", row 4: .*found inf; scale'),
    (pl.Series("weight", [float("nan")] + [1.0] * 4), r'column "weight", row 0: .*found NaN; fill it'),
    (pl.Series("weight", [1.0, None, 1.0, 1.0, 1.0]), r'column "weight", row 1: .*found null; fill it'),
    (pl.Series("weight", [1.7e308] * ROWS), r'column "weight": .*finite sum'),
    (pl.Series("weight", ["1"] * ROWS), r'column "weight": expected a numeric type, found .*; cast'),
    (pl.Series("weight", [True] * ROWS), r'column "weight": expected a numeric type, found bool; cast'),
    (pl.Series("weight", [None] * ROWS, dtype=pl.Null), r'column "weight": expected a numeric type, found null; cast'),
    (pl.Series("sample_id", [0, 1, 2, 0, 7]), r'column "sample_id", row 4: found 7, but .*0 to 1'),
    (pl.Series("sample_id", [0, 1, -2, 0, 1]), r'column "sample_id", row 2: .*found -2'),
    (pl.Series("sample_id", [0, None, 2, 0, 1]), r'column "sample_id", row 1: .*found null'),
    (
        pl.Series("sample_id", [0.0, 1.0, 2.0, 0.0, 1.0]),
        r'column "sample_id": expected an integer type, found float64; cast',
    ),
    (pl.Series("cache_id", [5, 5, 5, 5, 5]), r'column "cache_id", row 0: found 5, but no cache has cache_id 5'),
    (
        pl.Series("number", [0.0] * ROWS),
        r'column "number": expected the type it is stored with \(int64\), found float64; cast the column',
    ),
]


@pytest.mark.parametrize(("changed", "message"), REFUSALS, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("rechunk", [True, False], ids=["whole", "chunks"])
def test_d10_refusals_name_column_row_and_value(
    dataset: drt.CachedDataset, changed: pl.Series, message: str, rechunk: bool
) -> None:
    before = dataset.get_metadata()
    dataset.set_epoch_len(3)
    table = before.with_columns(changed)
    with pytest.raises(ValueError, match=message):
        dataset.update_metadata(pl.concat([table[:2], table[2:]], rechunk=rechunk))
    assert dataset.get_metadata().equals(before)
    assert len(dataset) == 3


@pytest.mark.parametrize("name", ["cache_id", "sample_id", "number", "weight"])
def test_d10_missing_columns_are_named(dataset: drt.CachedDataset, name: str) -> None:
    with pytest.raises(ValueError, match=f'column "{name}" is missing; expected cache_id, sample_id, number, weight'):
        dataset.update_metadata(dataset.get_metadata().drop(name))


def test_d10_a_table_without_rows_is_refused(dataset: drt.CachedDataset) -> None:
    with pytest.raises(ValueError, match="at least one row, found none"):
        dataset.update_metadata(dataset.get_metadata().clear())
    assert len(dataset) == ROWS


@pytest.mark.parametrize("name", ["weight", "cache_id", "sample_id"])
def test_d09_column_of_another_writer_named_like_those_of_tables_is_told(
    runtime: drt.DatasetRuntime, tmp_path: Path, name: str
) -> None:
    other = "x" * len(name)
    [path] = write(runtime, tmp_path, Listed("a", [(b"y", {other: 1})]))
    for file in (path / "manifest.json", path / "metadata.arrow"):
        content = file.read_bytes()
        assert other.encode() in content
        file.write_bytes(content.replace(other.encode(), name.encode()))
    dataset = opened(runtime, [path])
    assert [(sample.data, sample.metadata) for sample in dataset] == [(b"y", {name: 1})]
    told = f'{path}: the metadata column "{name}" has the name of a column that tables have anyway'
    (tmp_path / "out").mkdir()
    table = pa.table({"cache_id": [1], "sample_id": [0], "weight": [1]})
    for use in (
        dataset.get_metadata,
        lambda: dataset.update_metadata(table),
        lambda: dataset.dump_config(tmp_path / "out"),
    ):
        with pytest.raises(ValueError, match=told):
            use()
    assert not any((tmp_path / "out").iterdir())


def test_d09_column_with_a_nul_in_its_name_is_told(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    [path] = write(runtime, tmp_path, Listed("a", [(b"x", {"a_b": 1})]))
    # As 0.4.x writes it.
    (path / "manifest.json").write_text((path / "manifest.json").read_text().replace('"a_b"', '"a\\u0000b"'))
    (path / "metadata.arrow").write_bytes((path / "metadata.arrow").read_bytes().replace(b"a_b", b"a\0b"))
    dataset = opened(runtime, [path])
    assert [sample.metadata for sample in dataset] == [{"a\0b": 1}]
    with pytest.raises(ValueError, match="has a NUL in its name, which tables cannot have; iterate over the samples"):
        dataset.get_metadata()


@pytest.mark.parametrize("part", [slice(0, 3), slice(1, 5), slice(0, 5, 2)], ids=str)
def test_d10_a_part_of_the_same_memory_is_another_table(dataset, part):
    frame = dataset.get_metadata().rechunk()
    dataset.update_metadata(frame)
    dataset.update_metadata(dataset.get_metadata()[part])
    expected = list(range(3)) + list(range(2))
    assert numbers(dataset) == expected[part]
