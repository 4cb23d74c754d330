"""C2: names of sources are plain path segments, and differ on every file system."""

from pathlib import Path
from typing import Any

import pytest
from support import QUIET, Listed, numbered

import dataset_rt as drt

BAD = ["", ".", "..", "tmp", "TMP", "tMp", "a/b", "/", "a/", "a\\b", "a\0b", "x" * 256, "é" * 128]
GOOD = ["a", "tmp2", ".hidden", "données", "😀", "a b", "x" * 255, "é" * 127, "a:b", "..."]


@pytest.mark.parametrize("name", BAD, ids=repr)
def test_c02_bad_name_is_the_error_of_its_source(runtime: drt.DatasetRuntime, tmp_path: Path, name: str) -> None:
    results = runtime.write_cache([numbered(name, 1), numbered("good", 1)], tmp_path, writer_config=QUIET)
    assert isinstance(results[0], drt.CacheWriteError)
    assert results[0].source_name == name
    assert "source name" in results[0].message
    assert results[1] == drt.CacheWriteSuccess("good", tmp_path / "good")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "tmp") == ["good"]


@pytest.mark.parametrize("name", GOOD, ids=lambda name: repr(name[:8]))
def test_c02_good_names_become_directories(runtime: drt.DatasetRuntime, tmp_path: Path, name: str) -> None:
    results = runtime.write_cache(numbered(name, 1), tmp_path, writer_config=QUIET)
    assert results == [drt.CacheWriteSuccess(name, tmp_path / name)]
    assert (tmp_path / name / "manifest.json").is_file()


class Nameless:
    def __iter__(self) -> Any:
        return iter([(b"", {})])


class Raising:
    @property
    def name(self) -> str:
        raise LookupError("the name is gone")

    def __iter__(self) -> Any:
        return iter([(b"", {})])


class Mistyped:
    @property
    def name(self) -> str:
        return self.titel  # type: ignore[attr-defined,no-any-return]  # a typing error, as its author made it

    def __iter__(self) -> Any:
        return iter([(b"", {})])


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (Nameless(), "without a name"),
        (Mistyped(), "reading the name raised AttributeError: 'Mistyped' object has no attribute 'titel'"),
        (Raising(), "LookupError: the name is gone"),
        (Listed(None, []), "source name must be a str, found NoneType"),
        (Listed(b"a", []), "source name must be a str, found bytes"),
        (Listed(3, []), "source name must be a str, found int"),
        (Listed("\ud800", []), "no valid Unicode"),
        (42, "found int without a name"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_c02_source_without_a_valid_string_is_called_by_its_place(
    runtime: drt.DatasetRuntime, tmp_path: Path, source: Any, reason: str
) -> None:
    results = runtime.write_cache([numbered("a", 1), source], tmp_path, writer_config=QUIET)
    assert results[0] == drt.CacheWriteSuccess("a", tmp_path / "a")
    assert isinstance(results[1], drt.CacheWriteError)
    assert results[1].source_name == "source[1]"
    assert reason in results[1].message


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a", "a"),
        ("a", "A"),
        ("straße", "STRASSE"),
        ("caf\u00e9", "cafe\u0301"),
        ("CAF\u00c9", "cafe\u0301"),
        ("\u1e9e", "ss"),
        ("\u0345", "\u03b9"),
    ],
    ids=ascii,
)
def test_c02_names_that_may_be_one_file_are_refused_before_anything_is_created(
    runtime: drt.DatasetRuntime, tmp_path: Path, first: str, second: str
) -> None:
    base = tmp_path / "base"
    with pytest.raises(ValueError, match="duplicate generated cache path"):
        runtime.write_cache([numbered(first, 1), numbered("between", 1), numbered(second, 1)], base)
    with pytest.raises(ValueError, match="duplicate generated cache path"):
        runtime.from_cache_sources(
            [numbered(first, 1), numbered(second, 1)], base, reader_config=drt.ReaderConfig(seed=1)
        )
    assert not base.exists()


def test_c02_subclass_of_str_is_a_name(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    class Name(str):
        __slots__ = ()

    results = runtime.write_cache(Listed(Name("a"), [(b"", {})]), tmp_path, writer_config=QUIET)
    assert results == [drt.CacheWriteSuccess("a", tmp_path / "a")]
