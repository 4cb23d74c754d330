"""Caches and exports of this library and of the published 0.4.8: each reads what the other wrote."""

import base64
import json
import math
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peer import Source, decoded, described, edited, encoded

import dataset_rt as drt

RESERVED = {"cache_id", "sample_id", "weight", "an extra", "a category", "a list", "a price"}
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int": st.integers(-(2**63), 2**63 - 1),
    # The published package rounds some of them when it parses them back; all are exact in its tables.
    "float": st.floats(allow_nan=False, allow_infinity=False),
    # These it parses exactly, so that its validation accepts them.
    "plain float": st.integers(-(2**20), 2**20).map(lambda number: number / 8),
    "string": st.text(st.characters(codec="utf-8"), max_size=12),
}
# The interface by which tables go to and from Polars has names without NUL.
COLUMNS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6).filter(
    lambda name: name not in RESERVED
)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\\\0"), min_size=1, max_size=8).filter(
    lambda name: name not in {".", ".."} and name.lower() != "tmp" and len(name.encode()) < 100
)
SETTINGS = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@dataclass
class Caches:
    """What is written, by whichever library."""

    sources: list[tuple[str, list[tuple[bytes, dict[str, Any]]]]]
    algo: str
    max_shard_bytes: int
    exact: bool

    def for_peer(self) -> list[Any]:
        return [
            (name, [(base64.b64encode(data).decode(), {k: encoded(v) for k, v in row.items()}) for data, row in rows])
            for name, rows in self.sources
        ]


@st.composite
def caches(draw: st.DrawFn) -> Caches:
    kinds = draw(
        st.dictionaries(
            COLUMNS,
            st.sampled_from(sorted(KINDS)),
            min_size=1,
            max_size=4,
        )
    )
    row = st.tuples(st.binary(max_size=90), st.fixed_dictionaries({name: KINDS[kind] for name, kind in kinds.items()}))
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique_by=lambda name: name.casefold().strip()))
    sources = [(name, draw(st.lists(row, min_size=1, max_size=9))) for name in names]
    return Caches(
        sources,
        algo=draw(st.sampled_from(["none", "lz4"])),
        max_shard_bytes=draw(st.sampled_from([1, 100, 300, 1 << 20])),
        exact="float" not in kinds.values(),
    )


@pytest.fixture(scope="module")
def runtime() -> Iterator[drt.DatasetRuntime]:
    with drt.DatasetRuntime(num_workers=2) as runtime:
        yield runtime


def new_directory() -> Path:
    """In memory where the system has such a place: caches are synced."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))


@pytest.fixture
def base() -> Iterator[Path]:
    directory = new_directory()
    yield directory
    shutil.rmtree(directory)


def write_ours(runtime: drt.DatasetRuntime, base: Path, given: Caches) -> list[Path]:
    config = drt.WriterConfig(
        show_progress=False,
        max_shard_bytes=given.max_shard_bytes,
        shard_compression=drt.ShardCompression(algo=given.algo),  # type: ignore[arg-type]
    )
    results = runtime.write_cache([Source(name, rows) for name, rows in given.for_peer()], base, writer_config=config)
    assert [result for result in results if isinstance(result, drt.CacheWriteError)] == []
    return [base / name for name, _ in given.sources]


def write_theirs(peer: Any, base: Path, given: Caches) -> list[Path]:
    results = peer(
        "write", base=str(base), sources=given.for_peer(), algo=given.algo, max_shard_bytes=given.max_shard_bytes
    )
    assert [result for result in results if "message" in result] == []
    return [base / name for name, _ in given.sources]


def open_ours(runtime: drt.DatasetRuntime, paths: list[Path], *, validate: bool = True) -> drt.CachedDataset:
    config = drt.ReaderConfig(seed=1, shuffle=False, validate_cache=validate)
    return runtime.cached_dataset(paths, reader_config=config)


def read_ours(runtime: drt.DatasetRuntime, paths: list[Path]) -> dict[str, Any]:
    return described(open_ours(runtime, paths))


def read_theirs(peer: Any, paths: list[Path], *, validate: bool) -> Any:
    return peer("read", paths=[str(path) for path in paths], validate=validate)


def plain(value: Any) -> Any:
    """As it comes out of JSON."""
    return json.loads(json.dumps(value))


def assert_same(found: Any, exact: Any, *, last_bits: bool) -> None:
    """Compare what the published package tells. Floats of its samples may be off in their last bit, those of its table not."""
    if last_bits:
        for sample, exactly in zip(found["samples"], exact["samples"], strict=True):
            for name, value in exactly[3].items():
                off = sample[3][name]
                if isinstance(value, list) and off != value:
                    assert abs(decoded(off) - decoded(value)) <= math.ulp(decoded(value))
                    sample[3][name] = value
    assert found == plain(exact)


def expected(given: Caches, columns: list[str]) -> list[Any]:
    """Payload and metadata of every sample as they were given, floats by their bits."""
    return [
        [base64.b64encode(data).decode(), {name: encoded(row[name]) for name in columns}]
        for _, rows in given.sources
        for data, row in rows
    ]


@SETTINGS
@given(given=caches())
def test_c14_both_libraries_write_the_same_records_and_manifests(
    runtime: drt.DatasetRuntime, peer: Any, given: Caches
) -> None:
    directory = new_directory()
    try:
        ours = write_ours(runtime, directory / "ours", given)
        theirs = write_theirs(peer, directory / "theirs", given)
        for our, their in zip(ours, theirs, strict=True):
            files = {file.relative_to(their).as_posix() for file in their.rglob("*") if file.is_file()}
            own = {file.relative_to(our).as_posix() for file in our.rglob("*") if file.is_file()}
            assert own - files == {"checksums.bin"}
            for name in files - {"manifest.json", "metadata.arrow"}:
                assert (our / name).read_bytes() == (their / name).read_bytes(), name
            # An Arrow file can say the same in many ways.
            tables = [pa.ipc.open_file(path / "metadata.arrow").read_all() for path in (our, their)]
            assert tables[0].equals(tables[1], check_metadata=True)
            text = [(path / "manifest.json").read_text(encoding="utf-8") for path in (our, their)]
            head, found, _ = re.sub(r'(?<="metadata_sha256": ")\w+', "", text[0]).rpartition(',\n  "record_checksums"')
            assert found
            assert head + "\n}" == re.sub(r'(?<="metadata_sha256": ")\w+', "", text[1])
    finally:
        shutil.rmtree(directory)


@SETTINGS
@given(given=caches())
def test_d07_both_libraries_read_the_caches_of_both(runtime: drt.DatasetRuntime, peer: Any, given: Caches) -> None:
    directory = new_directory()
    try:
        ours = write_ours(runtime, directory / "ours", given)
        theirs = write_theirs(peer, directory / "theirs", given)
        exact = read_ours(runtime, ours)
        columns = sorted(given.sources[0][1][0][1])
        assert [sample[2:] for sample in exact["samples"]] == expected(given, columns)
        assert read_ours(runtime, theirs) == exact
        for paths in (ours, theirs):
            assert_same(read_theirs(peer, paths, validate=given.exact), exact, last_bits=not given.exact)
    finally:
        shutil.rmtree(directory)


@st.composite
def edits(draw: st.DrawFn) -> dict[str, Any]:
    rows = draw(st.lists(st.integers(0, 6), min_size=1, max_size=12))
    weight = st.floats(min_value=1e-300, max_value=1e300)
    weights = draw(st.lists(weight, min_size=len(rows), max_size=len(rows)))
    return {"rows": rows, "weights": weights, "epoch_len": draw(st.integers(1, 30))}


@SETTINGS
@given(given=caches().filter(lambda given: sum(len(rows) for _, rows in given.sources) > 6), edit=edits())
def test_e01_both_libraries_open_the_exports_of_both(
    runtime: drt.DatasetRuntime, peer: Any, given: Caches, edit: dict[str, Any]
) -> None:
    directory = new_directory()
    try:
        paths = write_ours(runtime, directory / "caches", given)
        (directory / "ours").mkdir()
        (directory / "theirs").mkdir()
        dataset = open_ours(runtime, paths, validate=False)
        dataset.update_metadata(edited(dataset.get_metadata(), edit["rows"], edit["weights"]))
        dataset.set_epoch_len(edit["epoch_len"])
        ours = dataset.dump_config(directory / "ours")
        theirs = peer(
            "export",
            paths=[str(path) for path in paths],
            directory=str(directory / "theirs"),
            **edit | {"weights": [encoded(weight) for weight in edit["weights"]]},
        )
        assert ours.read_bytes() == Path(theirs).read_bytes()
        exact = described(dataset)
        for config in (ours, Path(theirs)):
            with drt.CachedDataset.from_config(config) as loaded:
                assert described(loaded) == exact
                assert loaded.get_metadata().schema == dataset.get_metadata().schema
            assert_same(peer("load", config=str(config)), exact, last_bits=not given.exact)
    finally:
        shutil.rmtree(directory)


def to_version_2(path: Path) -> None:
    """As before there were stored ids."""
    file = path / "manifest.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    del content["cache_id"]
    content.pop("manifest_checksum", None)
    content |= {"format_version": 2, "a note": {"kept": [1, 2.5]}}
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")


@pytest.mark.parametrize("writer", ["ours", "theirs"])
@pytest.mark.parametrize("migrator", ["ours", "theirs"])
def test_e01_caches_of_version_2_are_migrated_by_either_for_both(
    runtime: drt.DatasetRuntime, peer: Any, base: Path, writer: str, migrator: str
) -> None:
    rows = {name: [(bytes([row]) * row, {"number": row, "é": f"{name}{row}"}) for row in range(4)] for name in "cab"}
    given = Caches(list(rows.items()), algo="lz4", max_shard_bytes=100, exact=True)
    paths = write_ours(runtime, base, given) if writer == "ours" else write_theirs(peer, base, given)
    for path in paths:
        to_version_2(path)
    before = read_ours(runtime, paths)
    assert {sample[0] for sample in before["samples"]} == {0, 1, 2}
    assert read_theirs(peer, paths, validate=True) == plain(before)
    statuses = []
    for _ in range(2):
        if migrator == "theirs":
            entries = peer("migrate", paths=[str(path) for path in paths])
            statuses.append([entry[1:] for entry in entries])
        else:
            outcome = open_ours(runtime, paths).update_manifests(version=3)
            assert isinstance(outcome, drt.Ok)
            statuses.append([[entry.cache_id, entry.status] for entry in outcome.value.entries])
    assert statuses == [[[number, status] for number in range(3)] for status in ("updated", "unchanged")]
    assert all(json.loads((path / "manifest.json").read_bytes())["a note"] == {"kept": [1, 2.5]} for path in paths)
    assert read_ours(runtime, paths) == before
    assert read_theirs(peer, paths, validate=True) == plain(before)
    backwards = read_ours(runtime, paths[::-1])
    assert sorted(backwards["samples"], key=str) == sorted(before["samples"], key=str)


def test_d07_what_only_this_library_stores_comes_back(runtime: drt.DatasetRuntime, peer: Any, base: Path) -> None:
    special = [math.nan, math.inf, -math.inf, -0.0]
    given = Caches([("special", [(b"", {"x": value}) for value in special])], "none", 1 << 20, exact=False)
    found = read_ours(runtime, write_ours(runtime, base, given))
    assert [sample[3]["x"] for sample in found["samples"]] == [[value.hex()] for value in special]
    # The published package says so instead of reading something else.
    with pytest.raises(AssertionError, match="failed to read"):
        read_theirs(peer, [base / "special"], validate=False)


@pytest.mark.parametrize("name", ["weight", "cache_id", "sample_id"])
def test_d09_columns_named_like_those_of_tables_are_told(
    runtime: drt.DatasetRuntime, peer: Any, base: Path, name: str
) -> None:
    """The published package writes such caches, and has no table of them either."""
    given = Caches([("named", [(b"x", {name: 1, "other": 2})])], "none", 1 << 20, exact=True)
    paths = write_theirs(peer, base, given)
    dataset = open_ours(runtime, paths)
    [sample] = dataset
    assert (sample.data, sample.metadata) == (b"x", {name: 1, "other": 2})
    (base / "out").mkdir()
    for use in (dataset.get_metadata, lambda: dataset.dump_config(base / "out")):
        with pytest.raises(ValueError, match=f'named: the metadata column "{name}" has the name of a column'):
            use()
    table = pa.table({"cache_id": [sample.cache_id], "sample_id": [0], "other": [2], "weight": [1]})
    with pytest.raises(ValueError, match=f'the metadata column "{name}" has the name of a column that tables have'):
        dataset.update_metadata(table)
    assert list(dataset) == [sample]
