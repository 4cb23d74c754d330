"""C5: what counts as metadata."""

import collections
import datetime as dt
import decimal
import enum
import math
import struct
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import Listed, round_trip, write_error

import dataset_rt as drt


class Level(enum.IntEnum):
    LOW = 3


class Colour(enum.StrEnum):
    RED = "red"


class Number(float):
    """A subclass of float."""


class Lazy(Mapping[str, Any]):
    """A mapping that is no dict."""

    def __init__(self, **values: Any) -> None:
        self.values_by_key = values

    def __getitem__(self, key: str) -> Any:
        return self.values_by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_key)

    def __len__(self) -> int:
        return len(self.values_by_key)


VALUES: list[tuple[Any, Any]] = [
    (True, True),
    (False, False),
    (0, 0),
    (2**63 - 1, 2**63 - 1),
    (-(2**63), -(2**63)),
    (Level.LOW, 3),
    (0.1, 0.1),
    (-0.0, -0.0),
    (5e-324, 5e-324),
    (1.7976931348623157e308, 1.7976931348623157e308),
    (math.inf, math.inf),
    (-math.inf, -math.inf),
    (Number(0.5), 0.5),
    ("", ""),
    ("données 😀 \0", "données 😀 \0"),
    (Colour.RED, "red"),
    (np.bool_(True), True),
    (np.int8(-3), -3),
    (np.int64(-(2**63)), -(2**63)),
    (np.uint64(2**63 - 1), 2**63 - 1),
    (np.float16(0.5), 0.5),
    (np.float32(0.1), float(np.float32(0.1))),
    (np.float64(0.1), 0.1),
    (np.str_("text"), "text"),
]


@pytest.mark.parametrize(("given", "read"), VALUES, ids=lambda value: f"{type(value).__name__} {value!r}"[:40])
def test_c05_values_keep_kind_and_bits(runtime: drt.DatasetRuntime, tmp_path: Path, given: Any, read: Any) -> None:
    for sample in round_trip(runtime, tmp_path, [(b"", {"k": given})] * 3):
        value = sample.metadata["k"]
        assert type(value) is type(read)
        assert value == read
        if isinstance(read, float):
            assert struct.pack("d", value) == struct.pack("d", read)


def test_c05_nan_stays_nan(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    [sample] = round_trip(runtime, tmp_path, [(b"", {"k": math.nan})])
    assert math.isnan(float(sample.metadata["k"]))


@pytest.mark.parametrize(
    ("value", "found", "hint"),
    [
        (None, "NoneType", "NaN"),
        (b"x", "bytes", "decode"),
        (bytearray(b"x"), "bytearray", "decode"),
        (np.bytes_(b"x"), "numpy.bytes_", "decode"),
        (dt.datetime(2020, 1, 1), "datetime.datetime", "isoformat"),
        (dt.date(2020, 1, 1), "datetime.date", "isoformat"),
        (np.datetime64("2020-01-01"), "numpy.datetime64", "isoformat"),
        (np.timedelta64(1, "s"), "numpy.timedelta64", "isoformat"),
        ([1], "list", "JSON"),
        ((1,), "tuple", "JSON"),
        ({"a": 1}, "dict", "JSON"),
        ({1}, "set", "JSON"),
        (np.array([1]), "numpy.ndarray", "JSON"),
        (decimal.Decimal("1.5"), "decimal.Decimal", "float() or str()"),
        (1j, "complex", "convert it to bool, int, float or str"),
        (np.complex64(1j), "numpy.complex64", "convert it"),
        (np.longdouble(1), "numpy.longdouble", "convert it"),
        (object(), "object", "convert it"),
        (2**63, "int outside -2^63 ... 2^63-1", "string or a float"),
        (-(2**63) - 1, "int outside -2^63 ... 2^63-1", "string or a float"),
        (np.uint64(2**63), "int outside -2^63 ... 2^63-1", "string or a float"),
        ("\ud800", "string with a lone surrogate", "replace it"),
    ],
    ids=lambda value: f"{type(value).__name__}"[:30],
)
def test_c05_other_values_are_refused_with_a_hint(
    runtime: drt.DatasetRuntime, tmp_path: Path, value: Any, found: str, hint: str
) -> None:
    first = write_error(runtime, tmp_path, Listed("a", [(b"", {"k": value})]))
    assert f'source "a", row 0: metadata key "k": expected bool, int, float or string, found {found}' in first
    assert hint in first
    for good, kind in ((1, "int"), ("x", "string")):
        later = write_error(runtime, tmp_path, Listed("a", [(b"", {"k": good}), (b"", {"k": value})]))
        assert f'source "a", row 1: metadata key "k": expected {kind}' in later
        assert f"found {found}" in later
        assert hint in later


KINDS: dict[str, list[Any]] = {
    "bool": [True, np.bool_(False)],
    "int": [1, np.int32(1)],
    "float": [0.5, np.float32(0.5)],
    "string": ["x", np.str_("x")],
}


@pytest.mark.parametrize("expected", KINDS)
@pytest.mark.parametrize("found", KINDS)
def test_c05_kind_of_a_column_never_changes(
    runtime: drt.DatasetRuntime, tmp_path: Path, expected: str, found: str
) -> None:
    for number, value in enumerate(KINDS[found]):
        source = Listed(f"{number}", [(b"", {"k": KINDS[expected][0]}), (b"", {"k": value})])
        if expected == found:
            [result] = runtime.write_cache([source], tmp_path)
            assert isinstance(result, drt.CacheWriteSuccess)
        else:
            message = write_error(runtime, tmp_path, source)
            assert f'row 1: metadata key "k": expected {expected} as in row 0, found {found}' in message
            assert message.endswith(f"; convert all values of this key to one kind, such as {expected}")


@pytest.mark.parametrize(
    "mapping",
    [
        {"a": 1, "b": "x"},
        {"b": "x", "a": 1},
        collections.OrderedDict(b="x", a=1),
        collections.defaultdict(int, a=1, b="x"),
        types.MappingProxyType({"a": 1, "b": "x"}),
        collections.ChainMap({"a": 1}, {"b": "x"}),
        Lazy(a=1, b="x"),
    ],
    ids=lambda mapping: type(mapping).__name__,
)
def test_c05_any_mapping_will_do_in_any_row(runtime: drt.DatasetRuntime, tmp_path: Path, mapping: Any) -> None:
    rows = [(b"", {"a": 0, "b": "first"}), (b"", mapping), (b"", {"".join("a"): 2, "b": "last"}), (b"", mapping)]
    assert [sample.metadata for sample in round_trip(runtime, tmp_path, rows)] == [
        {"a": 0, "b": "first"},
        {"a": 1, "b": "x"},
        {"a": 2, "b": "last"},
        {"a": 1, "b": "x"},
    ]


def test_c05_equal_keys_may_be_other_objects(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    rows = [(b"", {"".join(["na", "me"]): row, "".join(["do", "nnées"]): "x"}) for row in range(5)]
    assert [sample.metadata["name"] for sample in round_trip(runtime, tmp_path, rows)] == [0, 1, 2, 3, 4]


def test_c05_no_metadata_is_legal(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    samples = round_trip(runtime, tmp_path, [(b"x", {}), (b"y", {})])
    assert [(sample.data, sample.metadata) for sample in samples] == [(b"x", {}), (b"y", {})]


@pytest.mark.parametrize(
    "metadata", [None, [("a", 1)], "text", 3, b"x", object()], ids=lambda value: type(value).__name__
)
def test_c05_anything_but_a_mapping_is_refused(runtime: drt.DatasetRuntime, tmp_path: Path, metadata: Any) -> None:
    message = write_error(runtime, tmp_path, Listed("a", [(b"", {"a": 1}), (b"", metadata)]))
    assert "row 1: metadata must be a mapping with str keys, found" in message
    assert type(metadata).__name__ in message


@pytest.mark.parametrize("key", [1, None, b"a", ("a",)], ids=repr)
def test_c05_keys_are_strings(runtime: drt.DatasetRuntime, tmp_path: Path, key: Any) -> None:
    for rows in ([(b"", {key: 1})], [(b"", {"a": 1}), (b"", {key: 1})], [(b"", {"a": 1}), (b"", {"a": 1, key: 1})]):
        message = write_error(runtime, tmp_path, Listed("a", rows))
        assert f"metadata keys must be str, found {key!r} of type {type(key).__name__}" in message
    assert "no valid Unicode" in write_error(runtime, tmp_path, Listed("a", [(b"", {"\ud800": 1})]))


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"a": 1}, 'metadata key "b": expected string, found no such key'),
        ({}, "found no such key"),
        ({"a": 1, "b": "x", "c": 1}, 'metadata key "c": expected no such key, found int'),
        ({"a": 1, "c": "x"}, 'metadata key "c": expected no such key, found string'),
        ({"a": 1, "b": "x", "c": None}, 'metadata key "c": expected no such key, found NoneType'),
    ],
)
@pytest.mark.parametrize("kind", [dict, Lazy])
def test_c05_every_row_has_the_keys_of_row_0(
    runtime: drt.DatasetRuntime, tmp_path: Path, metadata: Any, reason: str, kind: Any
) -> None:
    message = write_error(runtime, tmp_path, Listed("a", [(b"", {"a": 1, "b": "x"}), (b"", kind(**metadata))]))
    assert 'source "a", row 1: ' in message
    assert reason in message


@pytest.mark.parametrize("key", ["cache_id", "sample_id", "weight"])
def test_c05_names_of_the_table_are_reserved(runtime: drt.DatasetRuntime, tmp_path: Path, key: str) -> None:
    message = write_error(runtime, tmp_path, Listed("a", [(b"", {"other": 1, key: 1})]))
    assert f'row 0: metadata key "{key}" is reserved' in message


def test_c05_keys_that_no_table_can_have_are_refused(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    message = write_error(runtime, tmp_path, Listed("a", [(b"", {"other": 1, "a\0b": 1})]))
    assert message.startswith('source "a", row 0: metadata key "a\\0b" holds a NUL')


def test_c05_order_of_keys_is_that_of_the_schema(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    [sample] = round_trip(runtime, tmp_path, [(b"", {"z": 1, "a": 2, "é": 3, "B": 4})])
    assert list(sample.metadata) == ["B", "a", "z", "é"]


def test_c05_mapping_that_raises_fails_its_source(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    class Broken(Lazy):
        def __getitem__(self, key: str) -> Any:
            raise LookupError("gone")

    message = write_error(runtime, tmp_path, Listed("a", [(b"", {"a": 1}), (b"", Broken(a=1))]))
    assert "row 1: reading metadata raised LookupError: gone" in message
