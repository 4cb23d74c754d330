"""C1: one source or any sequence of them, one result each in their order."""

from collections import UserList, deque
from pathlib import Path
from typing import Any

import pytest
from support import QUIET, Listed, numbered

import dataset_rt as drt


def test_c01_one_source_gives_a_list_of_one_result(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    results = runtime.write_cache(numbered("a", 1), tmp_path, writer_config=QUIET)
    assert results == [drt.CacheWriteSuccess("a", tmp_path / "a")]


@pytest.mark.parametrize("kind", [list, tuple, UserList, deque])
def test_c01_any_sequence_gives_results_in_its_order(runtime: drt.DatasetRuntime, tmp_path: Path, kind: Any) -> None:
    sources = kind([numbered("b", 2), Listed("empty", []), numbered("a", 1)])
    results = runtime.write_cache(sources, str(tmp_path), writer_config=QUIET)
    assert isinstance(results, list)
    assert results == [
        drt.CacheWriteSuccess("b", tmp_path / "b"),
        drt.CacheWriteError("empty", results[1][1]),
        drt.CacheWriteSuccess("a", tmp_path / "a"),
    ]
    assert results[1].message == "cache source yielded no samples"


def test_c01_no_sources_give_no_results(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    assert runtime.write_cache([], tmp_path / "new", writer_config=QUIET) == []
    assert runtime.write_cache((), tmp_path / "new", writer_config=QUIET) == []
    result = runtime.from_cache_sources([], tmp_path / "new", reader_config=drt.ReaderConfig(seed=1))
    assert isinstance(result, drt.CacheSourcesDatasetError)
    assert result.results == []
    assert "no source was given" in result.message
    assert not (tmp_path / "new").exists()


def test_c01_a_sequence_with_a_name_is_one_source(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    class Rows(list[Any]):
        name = "rows"

    results = runtime.write_cache(Rows([(b"x", {}), (b"y", {})]), tmp_path, writer_config=QUIET)
    assert results == [drt.CacheWriteSuccess("rows", tmp_path / "rows")]


@pytest.mark.parametrize(
    "sources", [None, 3, "name", b"name", {"a": numbered("a", 1)}, {1}, iter([]), (s for s in ()), object()]
)
def test_c01_anything_else_is_a_type_error(runtime: drt.DatasetRuntime, tmp_path: Path, sources: Any) -> None:
    with pytest.raises(TypeError, match=r"sources must be a cache source .* or a sequence of them, found"):
        runtime.write_cache(sources, tmp_path)


def test_c01_base_directory_is_created_with_its_parents(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    results = runtime.write_cache(numbered("a", 1), tmp_path / "new" / "base", writer_config=QUIET)
    assert results == [drt.CacheWriteSuccess("a", tmp_path / "new" / "base" / "a")]
