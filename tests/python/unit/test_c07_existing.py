"""C7, C14, C16: what is there is never touched, reuse takes what is whole, and bytes depend on input alone."""

from pathlib import Path
from typing import Any

import pytest
from support import QUIET, Listed, numbered, numbers, write, write_error

import dataset_rt as drt

CONFIG = drt.ReaderConfig(seed=1, shuffle=False)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_c07_complete_cache_is_refused_and_untouched(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    write(runtime, tmp_path, numbered("a", 10))
    before = tree(tmp_path / "a")
    message = write_error(runtime, tmp_path, numbered("a", 3))
    assert "already exists" in message
    assert str(tmp_path / "a") in message
    assert tree(tmp_path / "a") == before


@pytest.mark.parametrize(
    ("kind", "found"), [("file", "file"), ("directory", "without"), ("link", "neither a file nor a directory")]
)
def test_c07_anything_else_in_the_place_is_refused_by_its_name(
    runtime: drt.DatasetRuntime, tmp_path: Path, kind: str, found: str
) -> None:
    target = tmp_path / "a"
    if kind == "file":
        target.write_bytes(b"content")
    elif kind == "directory":
        target.mkdir()
        (target / "content").write_bytes(b"content")
    else:
        target.symlink_to(tmp_path / "nowhere")
    message = write_error(runtime, tmp_path, numbered("a", 3))
    assert "already exists" in message
    assert found in message
    if kind == "link":
        assert target.is_symlink()
    else:
        assert b"content" in (*tree(tmp_path).values(),)


def test_c07_source_of_a_taken_place_is_not_iterated(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    write(runtime, tmp_path, numbered("a", 1))

    class Source:
        name = "a"

        def __iter__(self) -> Any:
            pytest.fail("iterated")

    assert "already exists" in write_error(runtime, tmp_path, Source())


ROWS = [
    (bytes([row % 251]) * (row * 37 % 4000), {"row": row, "half": row / 2, "text": f"é{row}", "even": row % 2 == 0})
    for row in range(1500)
]


@pytest.mark.parametrize("algo", ["none", "lz4"])
def test_c14_bytes_depend_on_input_and_configuration_alone(tmp_path: Path, algo: Any) -> None:
    config = {"shard_compression": drt.ShardCompression(algo=algo, ratio=1), "max_shard_bytes": 30_000}
    trees = []
    for number, (workers, prefetch_size) in enumerate([(1, 1), (1, 64), (2, 1), (3, 64), (8, 3)]):
        base = tmp_path / str(number)
        with drt.DatasetRuntime(num_workers=workers) as runtime:
            # Rows as dicts made in one place, and as mappings that take the slow way in.
            rows = ROWS if number % 2 == 0 else [(bytearray(data), dict(reversed(row.items()))) for data, row in ROWS]
            write(runtime, base, Listed("a", rows), prefetch_size=prefetch_size, **config)
        trees.append(tree(base))
    assert len(trees[0]) > 5
    assert all(other == trees[0] for other in trees)


def test_c16_complete_caches_are_reused_and_missing_ones_written(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    write(runtime, tmp_path, numbered("a", 3))
    before = tree(tmp_path / "a")

    class Source:
        name = "a"

        def __iter__(self) -> Any:
            pytest.fail("iterated")

    result = runtime.from_cache_sources(
        [Source(), numbered("b", 2)], tmp_path, reader_config=CONFIG, writer_config=QUIET
    )
    assert isinstance(result, drt.CacheSourcesDatasetSuccess)
    assert result.results == [
        drt.CacheWriteSuccess("a", tmp_path / "a"),
        drt.CacheWriteSuccess("b", tmp_path / "b"),
    ]
    assert numbers(result.dataset) == [0, 1, 2, 0, 1]
    assert result.dataset.reader_config == CONFIG
    assert tree(tmp_path / "a") == before


def test_c16_dataset_is_over_every_source_that_has_a_cache(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    (tmp_path / "half").mkdir()
    result = runtime.from_cache_sources(
        [Listed("empty", []), numbered("a", 2), numbered("half", 1)],
        tmp_path,
        reader_config=CONFIG,
        writer_config=QUIET,
    )
    assert isinstance(result, drt.CacheSourcesDatasetSuccess)
    assert [type(entry) for entry in result.results] == [
        drt.CacheWriteError,
        drt.CacheWriteSuccess,
        drt.CacheWriteError,
    ]
    assert numbers(result.dataset) == [0, 1]


def test_c16_without_any_cache_there_is_no_dataset(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    result = runtime.from_cache_sources(Listed("empty", []), tmp_path, reader_config=CONFIG, writer_config=QUIET)
    assert isinstance(result, drt.CacheSourcesDatasetError)
    assert result.results == [drt.CacheWriteError("empty", "cache source yielded no samples")]
    told = 'no cache could be loaded: source "empty" failed: cache source yielded no samples'
    assert result.message == told
    both = [Listed("empty", []), Listed("a", [(b"", {"weight": 1})])]
    result = runtime.from_cache_sources(both, tmp_path, reader_config=CONFIG, writer_config=QUIET)
    assert isinstance(result, drt.CacheSourcesDatasetError)
    assert result.message == f"{told}; so did all 2 sources, see results"
    assert runtime.from_cache_sources([], tmp_path, reader_config=CONFIG, writer_config=QUIET) == (
        [],
        "no cache could be loaded: no source was given",
    )


def test_c16_caches_of_other_schemas_are_no_dataset(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    result = runtime.from_cache_sources(
        [numbered("a", 1), Listed("b", [(b"", {"number": 0.5})])],
        tmp_path,
        reader_config=CONFIG,
        writer_config=QUIET,
    )
    assert isinstance(result, drt.CacheSourcesDatasetError)
    assert [type(entry) for entry in result.results] == [drt.CacheWriteSuccess] * 2
    assert "number" in result.message


def test_c15_another_fingerprint_is_a_stale_cache(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    def source(fingerprint: str | None) -> Listed:
        made = numbered("a", 2)
        if fingerprint is not None:
            made.fingerprint = fingerprint  # type: ignore[attr-defined]
        return made

    def open_with(fingerprint: str | None) -> Any:
        return runtime.from_cache_sources(source(fingerprint), tmp_path, reader_config=CONFIG, writer_config=QUIET)

    assert isinstance(open_with("one"), drt.CacheSourcesDatasetSuccess)
    assert isinstance(open_with("one"), drt.CacheSourcesDatasetSuccess)
    assert isinstance(open_with(None), drt.CacheSourcesDatasetSuccess)
    stale = open_with("two")
    assert isinstance(stale, drt.CacheSourcesDatasetError)
    for part in ("stale cache", "one", "two"):
        assert part in stale.results[0].message


@pytest.mark.parametrize("processes", [0, 1])
def test_c15_a_fingerprint_that_lacks_something_is_not_taken_for_none(
    runtime: drt.DatasetRuntime, tmp_path: Path, processes: int
) -> None:
    class Mistyped(Listed):
        @property
        def fingerprint(self) -> str:
            return self.verson  # type: ignore[attr-defined,no-any-return]  # a typing error, as its author made it

    written = numbered("a", 2)
    written.fingerprint = "one"  # type: ignore[attr-defined]
    write(runtime, tmp_path, written)
    found = runtime.from_cache_sources(
        Mistyped("a", []),
        tmp_path,
        reader_config=CONFIG,
        writer_config=QUIET.model_copy(update={"num_processes": processes}),
    )
    assert isinstance(found, drt.CacheSourcesDatasetError)
    assert found.results[0][1].startswith('source "a": reading its fingerprint raised AttributeError: ')
    assert "verson" in found.results[0][1]


@pytest.mark.parametrize("processes", [0, 1])
def test_c15_a_stand_in_for_a_source_without_fingerprint_has_none(
    runtime: drt.DatasetRuntime, tmp_path: Path, processes: int
) -> None:
    class StandIn:
        def __init__(self, source: Listed) -> None:
            self.source = source

        def __getattr__(self, name: str) -> object:
            return getattr(self.source, name)

        def __iter__(self) -> object:
            return iter(self.source)

    written = numbered("a", 2)
    write(runtime, tmp_path, written)
    found = runtime.from_cache_sources(
        StandIn(written),  # type: ignore[arg-type]
        tmp_path,
        reader_config=CONFIG,
        writer_config=QUIET.model_copy(update={"num_processes": processes}),
    )
    assert isinstance(found, drt.CacheSourcesDatasetSuccess)
