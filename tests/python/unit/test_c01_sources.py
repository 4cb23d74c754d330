"""C1: one source or any sequence of them, one result each in their order."""

from collections import UserList, deque
from pathlib import Path
from typing import Any

import pytest
from processes.sources import Moving
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


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("num_processes", [0, 1])
def test_c01_a_relative_path_is_that_of_the_call(
    runtime: drt.DatasetRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_processes: int, alone: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = Moving("a", str(tmp_path)), Moving("b", str(tmp_path))
    config = QUIET.model_copy(update={"num_processes": num_processes})
    results = runtime.write_cache(first if alone else [first, second], "base", writer_config=config)
    assert results == [drt.CacheWriteSuccess(name, tmp_path / "base" / name) for name in ("ab"[:1] if alone else "ab")]
    assert (tmp_path / "base" / "a" / "manifest.json").exists()
    assert not (tmp_path / "elsewhere" / "base").exists()


def test_c16_reuse_takes_a_relative_path_as_that_of_the_call(
    runtime: drt.DatasetRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sources = [Moving("a", str(tmp_path)), Moving("b", str(tmp_path))]
    result = runtime.from_cache_sources(sources, "base", reader_config=drt.ReaderConfig(seed=1), writer_config=QUIET)
    assert isinstance(result, drt.CacheSourcesDatasetSuccess)
    assert result.dataset.cache_paths == [tmp_path / "base" / "a", tmp_path / "base" / "b"]


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("num_processes", [0, 1])
def test_c01_a_source_alone_is_told_about_as_in_a_list(
    runtime: drt.DatasetRuntime, tmp_path: Path, alone: bool, num_processes: int
) -> None:
    class Raising:
        @property
        def name(self) -> str:
            raise ValueError("name boom")

        def __iter__(self) -> Any:
            return iter(())

    class Absent(Raising):
        @property
        def name(self) -> str:
            raise AttributeError("name gone")

    class Dynamic:
        def __getattr__(self, key: str) -> Any:
            raise ValueError(f"{key} boom")

        def __iter__(self) -> Any:
            return iter(())

    config = QUIET.model_copy(update={"num_processes": num_processes})
    for source, text in ((Raising(), "name boom"), (Absent(), "AttributeError: name gone"), (Dynamic(), "name boom")):
        given: Any = source if alone else [source]
        [result] = runtime.write_cache(given, tmp_path, writer_config=config)
        assert isinstance(result, drt.CacheWriteError)
        assert result.source_name == "source[0]"
        assert text in result.message


def test_c01_the_name_of_one_source_is_read_once(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    class Counting:
        reads = 0

        @property
        def name(self) -> str:
            self.reads += 1
            return f"read {self.reads}"

        def __iter__(self) -> Any:
            return iter([(b"", {})])

    results = runtime.write_cache(Counting(), tmp_path, writer_config=QUIET)
    assert results == [drt.CacheWriteSuccess("read 1", tmp_path / "read 1")]


@pytest.mark.parametrize("alone", [True, False])
def test_c01_what_is_iterated_by_index_is_a_source(runtime: drt.DatasetRuntime, tmp_path: Path, alone: bool) -> None:
    class Indexed:
        name = "indexed"

        def __getitem__(self, row: int) -> Any:
            return [(b"x", {}), (b"y", {})][row]

    sources: Any = Indexed() if alone else [Indexed()]
    results = runtime.write_cache(sources, tmp_path, writer_config=QUIET)
    assert results == [drt.CacheWriteSuccess("indexed", tmp_path / "indexed")]
