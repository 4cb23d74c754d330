"""E1, C14: caches and exports of earlier days in tests/fixtures, which are never written again."""

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from support import Listed, opened, write

import dataset_rt as drt

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures"
sys.path.insert(0, str(ROOT / "examples"))

FLOATS = [0.1, 1.0, 1e300, -0.0, 5e-324, 1e16, 1e15, 123456789.125, 1 / 3, 1e-7, 3e-5, sys.float_info.max]
TEXTS = ["", 'x"\\\n\t\x01', "é😀", "/\x7f"]
INTS = [0, -1, 2**63 - 1, -(2**63), 42]
CACHES = [
    "written_by_0_1_0/lz4",
    "written_by_0_1_0/plain",
    "written_by_0_4_8/lz4",
    "written_by_0_4_8/plain",
    "version_2/lz4",
    "version_2/plain",
]


def rows(times: int) -> Iterator[tuple[bytes, dict[str, object]]]:
    """What every cache there holds; payloads of compressed ones nine times."""
    for row in range(30):
        metadata = {
            "ключ": INTS[row % 5],
            "flag": row % 3 == 0,
            "score": FLOATS[row % 12],
            "a text": TEXTS[row % 4],
        }
        yield bytes(row * place % 7 for place in range(row)) * times, metadata


def expected(name: str) -> list[tuple[bytes, list[tuple[str, str]]]]:
    return [(data, told(metadata)) for data, metadata in rows(9 if name.endswith("lz4") else 1)]


def told(metadata: dict[str, object]) -> list[tuple[str, str]]:
    """Values by their bits: `repr` of a float is exact and has the sign of zero."""
    return sorted((key, repr(value)) for key, value in metadata.items())


def test_e01_fixtures_are_what_they_were() -> None:
    listed = dict(reversed(line.split("  ")) for line in (FIXTURES / "SHA256SUMS").read_text().splitlines())
    found = {
        file.relative_to(FIXTURES).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for directory in {name.split("/")[0] for name in listed}
        for file in (FIXTURES / directory).rglob("*")
        if file.is_file() and file.name != "README.md"
    }
    assert found == listed
    assert all(f"{name}/manifest.json" in listed for name in CACHES)


@pytest.mark.parametrize("name", CACHES)
def test_e01_old_caches_read_back_exactly(runtime: drt.DatasetRuntime, name: str) -> None:
    dataset = opened(runtime, [FIXTURES / name], validate_cache=True)
    samples = list(dataset)
    assert [(sample.data, told(sample.metadata)) for sample in samples] == expected(name)
    manifest = json.loads((FIXTURES / name / "manifest.json").read_bytes())
    assert {sample.cache_id for sample in samples} == {manifest.get("cache_id", 0)}
    table = dataset.get_metadata()
    assert [told(row) for row in table.drop("cache_id", "sample_id", "weight").iter_rows(named=True)] == [
        metadata for _, metadata in expected(name)
    ]


@pytest.mark.parametrize("name", CACHES)
def test_e01_example_reads_caches_of_both_libraries(name: str) -> None:
    pytest.importorskip("pyarrow")
    from read_cache import read_cache

    assert [(data, told(metadata)) for metadata, data in read_cache(FIXTURES / name)] == expected(name)


def test_e01_example_is_short_and_reads_what_is_written_today(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import read_cache

    assert len(Path(read_cache.__file__).read_text().splitlines()) <= 60
    given = [(bytes([row % 3]) * (row * 37), {"row": row}) for row in range(60)]
    given += [(hashlib.sha256(bytes([row])).digest() * row, {"row": row}) for row in range(40)]
    lz4 = drt.ShardCompression(algo="lz4")
    [path] = write(runtime, tmp_path, Listed("a", given), shard_compression=lz4, max_shard_bytes=1500)
    assert [(data, metadata) for metadata, data in read_cache.read_cache(path)] == given


def changed(path: Path, file: str, change: Callable[[bytes], bytes]) -> None:
    """Change a file of a cache and what its manifest says of it."""
    before = (path / file).read_bytes()
    after = change(before)
    assert after != before
    (path / file).write_bytes(after)
    manifest = path / "manifest.json"
    old, new = (hashlib.sha256(content).hexdigest() for content in (before, after))
    manifest.write_text(manifest.read_text().replace(old, new))


CHANGES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a payload has another length": (
        "shards/000000.bin",
        lambda shard: shard.replace(b"\3\0\0\0\x30", b"\4\0\0\0\x30"),
    ),
    "a record is short": ("index.bin", lambda index: index[:16] + b"\x10" + index[17:]),
    "argument 2 is longer": ("index.bin", lambda index: index[:-24]),
    "cannot read format version 4": ("manifest.json", lambda text: text.replace(b'version": 3', b'version": 4')),
    "a name leads elsewhere": ("manifest.json", lambda text: text.replace(b'"000000.bin"', b'"../shards/000000.bin"')),
    "or compressed otherwise": ("manifest.json", lambda text: text.replace(b'"lz4"', b'"zstd"')),
}


@pytest.mark.parametrize("told", CHANGES)
def test_e01_example_refuses_what_cannot_be(runtime: drt.DatasetRuntime, tmp_path: Path, told: str) -> None:
    pytest.importorskip("pyarrow")
    from read_cache import read_cache

    lz4 = drt.ShardCompression(algo="lz4")
    [path] = write(runtime, tmp_path, Listed("a", [(b"abc", {"row": 0})] * 2), shard_compression=lz4)
    assert [data for _, data in read_cache(path)] == [b"abc"] * 2
    changed(path, *CHANGES[told])
    with pytest.raises(ValueError, match=told):
        list(read_cache(path))


@pytest.mark.parametrize("file", ["index.bin", "metadata.arrow", "shards/000001.bin"])
def test_e01_example_names_damaged_files(runtime: drt.DatasetRuntime, tmp_path: Path, file: str) -> None:
    pytest.importorskip("pyarrow")
    from read_cache import read_cache

    [path] = write(runtime, tmp_path, Listed("a", [(b"abc", {"row": 0})] * 2), max_shard_bytes=1)
    (path / file).write_bytes((path / file).read_bytes()[:-1] + b"?")
    with pytest.raises(ValueError, match=f"{file} is damaged"):
        list(read_cache(path))


@pytest.mark.parametrize(("name", "algo", "times"), [("plain", "none", 1), ("lz4", "lz4", 9)])
def test_c14_same_samples_make_the_same_files_as_ever(
    runtime: drt.DatasetRuntime, tmp_path: Path, name: str, algo: str, times: int
) -> None:
    fixture = FIXTURES / "written_by_0_1_0" / name
    source = Listed(json.loads((fixture / "manifest.json").read_bytes())["source_name"], rows(times))
    source.fingerprint = "thirty rows"
    compression = drt.ShardCompression(algo=algo)  # type: ignore[arg-type]
    [path] = write(runtime, tmp_path, source, shard_compression=compression, max_shard_bytes=2048)
    assert {file.relative_to(path): file.read_bytes() for file in path.rglob("*") if file.is_file()} == {
        file.relative_to(fixture): file.read_bytes() for file in fixture.rglob("*") if file.is_file()
    }


def test_e01_old_caches_of_version_2_are_migrated(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    paths = [Path(shutil.copytree(FIXTURES / "version_2" / name, tmp_path / name)) for name in ("plain", "lz4")]
    dataset = opened(runtime, paths)
    before = list(dataset)
    outcome = dataset.update_manifests(version=3)
    assert isinstance(outcome, drt.Ok)
    assert [(entry.cache_id, entry.status) for entry in outcome.value.entries] == [(0, "updated"), (1, "updated")]
    assert list(opened(runtime, paths, validate_cache=True)) == before
    assert sorted(opened(runtime, paths[::-1]), key=lambda sample: sample[2:]) == before


@pytest.mark.parametrize("name", ["exported_by_0_4_8", "exported_by_0_1_0"])
def test_e01_old_exports_open(tmp_path: Path, name: str) -> None:
    out = Path(shutil.copytree(FIXTURES / name, tmp_path / "out"))
    config = out / "dataset.json"
    text = config.read_text()
    assert text.count("/FIXTURES/") == 2
    config.write_text(text.replace("/FIXTURES/", f"{FIXTURES}/"))
    with drt.CachedDataset.from_config(config) as dataset:
        ids = [(sample.cache_id, sample.sample_id) for sample in dataset]
        plain, lz4 = 2342741951822945573, 2135560281457963951
        order = [(lz4, 29 - 3 * row) for row in range(10)] + [(plain, row) for row in (0, 0, 7, 7)]
        assert ids == order[:12]
        table = dataset.get_metadata()
        assert list(zip(table["cache_id"], table["sample_id"], strict=True)) == order
        assert table["weight"].to_list() == [row / 4 + 0.1 for row in range(14)]
        assert table["word"].to_list() == ["even" if row % 2 == 0 else None for row in range(14)]
        assert table["kind"].dtype == pl.Categorical
        assert table["kind"].cast(str).to_list() == [f"kind {row % 3}" for row in range(14)]
        assert dataset.reader_config == drt.ReaderConfig(seed=9, shuffle=False, prefetch_size=5)
