"""E1, E2: `dump_config` and `from_config`."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from support import Listed, files_end_at, native_threads, opened, run_python, write

import dataset_rt as drt


@pytest.fixture
def paths(runtime: drt.DatasetRuntime, tmp_path: Path) -> list[Path]:
    def rows(name: str, count: int) -> list[tuple[bytes, dict[str, object]]]:
        return [
            (f"{name} {row}".encode(), {"text": f"é {row}", "real": row / 3, "whole": row, "flag": row % 2 == 0})
            for row in range(count)
        ]

    return write(runtime, tmp_path, Listed("one", rows("one", 20)), Listed("two", rows("two", 13)))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    directory = tmp_path / "out"
    directory.mkdir()
    return directory


def edited(table: pl.DataFrame) -> pl.DataFrame:
    """Rows in another order, some of them missing and some repeated, weights, and columns of many types."""
    return pl.concat([table.reverse(), table.head(5), table.head(3)], rechunk=False).with_columns(
        (pl.col("whole") * 0.37 + 0.1).alias("weight"),
        pl.col("text").cast(pl.Categorical).alias("category"),
        pl.lit("y").cast(pl.Enum(["x", "y"])).alias("enum"),
        pl.concat_list(["text", "text"]).alias("list"),
        pl.concat_arr(["real", "real"]).alias("array"),
        pl.struct(["text", "real"]).alias("struct"),
        pl.datetime(2020, 1, 1, time_zone="Europe/Berlin").alias("moment"),
        pl.duration(seconds=3).alias("time"),
        pl.date(2020, 1, 1).alias("date"),
        pl.lit(7).cast(pl.Decimal(10, 2)).alias("decimal"),
        pl.lit(b"\0\xff").alias("binary"),
        pl.lit(3).cast(pl.UInt8).alias("byte"),
        pl.when(pl.col("flag")).then(pl.col("real")).alias("sometimes"),
        pl.lit(None).alias("never"),
    )


def seen(dataset: drt.CachedDataset) -> list[drt.CachedSample]:
    return list(dataset)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("change", [False, True])
def test_e01_everything_but_the_cursor_survives(
    runtime: drt.DatasetRuntime, paths: list[Path], out: Path, shuffle: bool, change: bool
) -> None:
    dataset = opened(runtime, paths, shuffle=shuffle, seed=2**64 - 1, prefetch_size=3)
    if change:
        dataset.update_metadata(edited(dataset.get_metadata()))
        dataset.set_epoch_len(17)
    passes = [seen(dataset) for _ in range(3)]
    config = dataset.dump_config(out)
    assert config == out / "dataset.json"
    assert sorted(file.name for file in out.iterdir()) == ["dataset.json", "metadata.arrow"]
    with drt.CachedDataset.from_config(str(config)) as loaded:
        assert loaded.get_metadata().equals(dataset.get_metadata())
        assert loaded.get_metadata().schema == dataset.get_metadata().schema
        assert (len(loaded), loaded.reader_config) == (len(dataset), dataset.reader_config)
        assert loaded.cache_paths == dataset.cache_paths
        assert [seen(loaded) for _ in range(3)] == passes
        loaded.set_epoch_len(2)
        assert len(seen(loaded)) == 2


def test_e01_configuration_is_as_the_format_says(runtime: drt.DatasetRuntime, paths: list[Path], out: Path) -> None:
    config = opened(runtime, paths, seed=5).dump_config(out)
    content = {
        "version": 2,
        "cache_paths": [str(path) for path in paths],
        "reader_config": {"seed": 5, "prefetch_size": 64, "shuffle": False, "validate_cache": False},
        "num_workers": 2,
        "epoch_len": 33,
        "row_count": 33,
        "metadata_file": "metadata.arrow",
    }
    assert config.read_text(encoding="utf-8") == json.dumps(content, indent=2, ensure_ascii=False)


def test_e01_table_is_a_file_that_others_read(runtime: drt.DatasetRuntime, paths: list[Path], out: Path) -> None:
    dataset = opened(runtime, paths)
    dataset.update_metadata(edited(dataset.get_metadata()).drop("never"))
    dataset.dump_config(out)
    assert pl.read_ipc(out / "metadata.arrow").equals(dataset.get_metadata())
    stored = ["cache_id", "sample_id", "flag", "real", "text", "whole", "weight"]
    assert pl.read_ipc_schema(out / "metadata.arrow").keys() >= set(stored)
    assert list(pl.read_ipc_schema(out / "metadata.arrow"))[:7] == stored


def test_e01_many_rows_are_exported_in_pieces(runtime: drt.DatasetRuntime, paths: list[Path], out: Path) -> None:
    dataset = opened(runtime, paths, shuffle=True)
    table = pl.concat([dataset.get_metadata()] * 20_000).with_columns(extra=pl.int_range(pl.len()))
    dataset.update_metadata(table.with_columns(weight=pl.col("extra") + 1))
    dataset.set_epoch_len(1000)
    loaded = drt.CachedDataset.from_config(dataset.dump_config(out))
    assert seen(loaded) == seen(dataset)
    assert loaded.get_metadata().equals(dataset.get_metadata())


def test_e01_loaded_dataset_needs_no_runtime_and_ends_its_threads(
    runtime: drt.DatasetRuntime, paths: list[Path], out: Path
) -> None:
    config = opened(runtime, paths).dump_config(out)
    runtime.close()
    assert native_threads(0) == []
    loaded = drt.CachedDataset.from_config(config)
    assert len(native_threads(2)) == 2
    assert len(seen(loaded)) == 33
    loaded.close()
    assert native_threads(0) == []
    with pytest.raises(RuntimeError, match="closed"):
        loaded.dump_config(out)


def test_e01_moved_export_opens_and_relative_paths_are_resolved(
    runtime: drt.DatasetRuntime, paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here").mkdir()
    config = opened(runtime, paths).dump_config("here")
    assert config == tmp_path.resolve() / "here" / "dataset.json"
    shutil.move("here", "there")
    monkeypatch.chdir(tmp_path / "there")
    loaded = drt.CachedDataset.from_config("dataset.json")
    monkeypatch.chdir("/")
    assert len(seen(loaded)) == 33


def test_e01_cache_directories_that_are_gone_are_named_one_by_one(
    runtime: drt.DatasetRuntime, paths: list[Path], out: Path
) -> None:
    config = opened(runtime, paths).dump_config(out)
    paths[1].rename(paths[1].with_name("moved"))
    with pytest.raises(FileNotFoundError, match="1 of 2 cache directories") as raised:
        drt.CachedDataset.from_config(config)
    assert raised.value.filename == str(paths[1])
    assert str(paths[0]) not in str(raised.value)
    shutil.rmtree(paths[0])
    with pytest.raises(FileNotFoundError, match="2 of 2 cache directories") as raised:
        drt.CachedDataset.from_config(config)
    assert all(f'"{path}"' in str(raised.value) for path in paths)
    assert f"correct cache_paths in {config}" in str(raised.value)


def test_e01_moved_without_its_table_is_not_damaged(runtime: drt.DatasetRuntime, paths: list[Path], out: Path) -> None:
    config = opened(runtime, paths).dump_config(out)
    moved = config.rename(out.parent / "dataset.json")
    with pytest.raises(FileNotFoundError, match="move both files together") as raised:
        drt.CachedDataset.from_config(moved)
    assert raised.value.filename == str(out.parent / "metadata.arrow")
    (out.parent / "metadata.arrow").write_bytes((out / "metadata.arrow").read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"metadata\.arrow: expected an Arrow IPC file"):
        drt.CachedDataset.from_config(moved)


def test_e01_no_export_at_all(runtime: drt.DatasetRuntime, paths: list[Path], out: Path) -> None:
    with pytest.raises(FileNotFoundError):
        drt.CachedDataset.from_config(out / "dataset.json")
    with pytest.raises(IsADirectoryError, match=r"pass the file dataset\.json in it") as raised:
        drt.CachedDataset.from_config(out)
    assert (raised.value.errno, raised.value.filename) == (errno.EISDIR, str(out))
    os.mkfifo(out / "pipe")
    with pytest.raises(ValueError, match="expected a regular file, found a named pipe"):
        drt.CachedDataset.from_config(out / "pipe")
    with pytest.raises(ValueError, match="expected the configuration of an exported dataset"):
        drt.CachedDataset.from_config(paths[0] / "manifest.json")
    with pytest.raises(TypeError, match="path must be str or Path, found int"):
        drt.CachedDataset.from_config(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["dataset.json", "metadata.arrow"])
def test_e01_directory_in_the_place_of_a_file_of_an_export(
    runtime: drt.DatasetRuntime, paths: list[Path], out: Path, name: str
) -> None:
    config = opened(runtime, paths).dump_config(out)
    (out / name).unlink()
    (out / name).mkdir()
    with pytest.raises(IsADirectoryError) as raised:
        drt.CachedDataset.from_config(config)
    assert (raised.value.errno, raised.value.filename) == (errno.EISDIR, str(out / name))


def test_e01_subclasses_load_themselves(runtime: drt.DatasetRuntime, paths: list[Path], out: Path) -> None:
    class Mine(drt.CachedDataset):
        pass

    assert type(Mine.from_config(opened(runtime, paths).dump_config(out))) is Mine


def test_e02_existing_files_are_never_replaced(runtime: drt.DatasetRuntime, paths: list[Path], out: Path) -> None:
    dataset = opened(runtime, paths)
    config = dataset.dump_config(out)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    with pytest.raises(FileExistsError, match="choose another directory") as raised:
        dataset.dump_config(out)
    assert raised.value.filename == str(config)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    config.unlink()
    with pytest.raises(FileExistsError, match="no finished export") as raised:
        dataset.dump_config(out)
    assert raised.value.filename == str(out / "metadata.arrow")


def test_e02_directory_must_exist(runtime: drt.DatasetRuntime, paths: list[Path], out: Path) -> None:
    dataset = opened(runtime, paths)
    with pytest.raises(FileNotFoundError):
        dataset.dump_config(out / "nowhere")
    (out / "file").touch()
    with pytest.raises(NotADirectoryError):
        dataset.dump_config(out / "file")
    with pytest.raises(TypeError, match="path must be str or Path, found NoneType"):
        dataset.dump_config(None)  # type: ignore[arg-type]
    assert [file.name for file in out.iterdir()] == ["file"]


def test_e02_failed_write_leaves_nothing(runtime: drt.DatasetRuntime, paths: list[Path], out: Path) -> None:
    dataset = opened(runtime, paths)
    dataset.update_metadata(pl.concat([dataset.get_metadata()] * 20))
    with files_end_at(4096), pytest.raises(OSError, match="cannot write") as raised:
        dataset.dump_config(out)
    assert str(raised.value.filename).startswith(str(out))
    assert list(out.iterdir()) == []


def test_e02_failed_configuration_takes_the_table_with_it(
    runtime: drt.DatasetRuntime, tmp_path: Path, out: Path
) -> None:
    # The table is small and the paths in the configuration are long.
    base = tmp_path / ("x" * 200) / ("y" * 200)
    base.mkdir(parents=True)
    paths = write(runtime, base, *(Listed(f"{number}", [(b"", {})]) for number in range(12)))
    dataset = opened(runtime, paths)
    with files_end_at(4096), pytest.raises(OSError, match="cannot write"):
        dataset.dump_config(out)
    assert list(out.iterdir()) == []


def test_e01_forked_child_exports_nothing_and_loads_for_itself(tmp_path: Path) -> None:
    program = """
import os, sys, warnings
import dataset_rt as drt
sys.path.insert(0, "tests/python")
from support import numbered, opened, write
from collections.abc import Callable
from pathlib import Path
base = Path(sys.argv[1])
warnings.simplefilter("ignore")
runtime = drt.DatasetRuntime(num_workers=2)
dataset = opened(runtime, write(runtime, base, numbered("one", 5)))
(base / "out").mkdir()
(base / "child").mkdir()
config = dataset.dump_config(base / "out")
if os.fork() == 0:
    try:
        dataset.dump_config(base / "child")
    except RuntimeError:
        assert not any((base / "child").iterdir())
        os._exit(40 + len(list(drt.CachedDataset.from_config(config))))
    os._exit(1)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    result = run_python(program, str(tmp_path), cwd=Path(__file__).parents[3])
    assert result.returncode == 45, result.stderr


def test_e02_exports_of_several_processes_do_not_mix(tmp_path: Path, runtime: drt.DatasetRuntime, out: Path) -> None:
    """What an ended process of the same number left is not in the way either."""
    [path] = write(runtime, tmp_path, Listed("one", [(b"x", {"number": 1})]))
    for attempt in range(50):
        (out / f".drt-{os.getpid()}-{attempt}.tmp").touch()
    assert len(drt.CachedDataset.from_config(opened(runtime, [path]).dump_config(out))) == 1


def test_e01_path_that_is_no_unicode_is_refused(runtime: drt.DatasetRuntime, tmp_path: Path, out: Path) -> None:
    [path] = write(runtime, tmp_path, Listed("one", [(b"x", {"number": 1})]))
    moved = path.rename(tmp_path / os.fsdecode(b"\xff"))
    with pytest.raises(ValueError, match="no valid Unicode and cannot be exported; rename the directory"):
        opened(runtime, [moved]).dump_config(out)
    assert list(out.iterdir()) == []


DAMAGES: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "weight is NaN": lambda t: t.with_columns(weight=pl.lit(float("nan"))),
    "weight is 0": lambda t: t.with_columns(weight=pl.lit(0.0)),
    "weight is negative": lambda t: t.with_columns(weight=pl.lit(-1.0)),
    "weight is infinite": lambda t: t.with_columns(weight=pl.lit(float("inf"))),
    "weight is null": lambda t: t.with_columns(weight=pl.lit(None, dtype=pl.Float64)),
    "weights overflow": lambda t: t.with_columns(weight=pl.lit(1e308)),
    "weight is text": lambda t: t.with_columns(weight=pl.lit("1")),
    "sample_id is null": lambda t: t.with_columns(sample_id=pl.lit(None, dtype=pl.UInt64)),
    "no weight": lambda t: t.drop("weight"),
    "no cache_id": lambda t: t.drop("cache_id"),
    "type of no column": lambda t: t.with_columns(pl.Series("x", [[]] * len(t), dtype=pl.Array(pl.Int8, 0))),
}


def with_table(config: Path, table: pl.DataFrame) -> None:
    table.write_ipc(config.with_name("metadata.arrow"), compat_level=pl.CompatLevel.oldest())


@pytest.mark.parametrize("damage", DAMAGES)
def test_e01_damaged_table_is_to_be_exported_again(
    runtime: drt.DatasetRuntime, paths: list[Path], out: Path, damage: str
) -> None:
    dataset = opened(runtime, paths)
    config = dataset.dump_config(out)
    with_table(config, DAMAGES[damage](dataset.get_metadata()))
    with pytest.raises(
        ValueError, match=r"metadata\.arrow: the exported table is damaged: .*; export again$"
    ) as raised:
        drt.CachedDataset.from_config(config)
    for advice in ("fit the caches", "filter", "cast", "get_metadata", "update", "fill", "divide", "clip"):
        assert advice not in str(raised.value)


def test_e01_column_that_is_there_twice_is_damage(runtime: drt.DatasetRuntime, paths: list[Path], out: Path) -> None:
    dataset = opened(runtime, paths)
    config = dataset.dump_config(out)
    table = dataset.get_metadata().with_columns(weighs=pl.lit(1.0))
    with_table(config, table)
    file = config.with_name("metadata.arrow")
    file.write_bytes(file.read_bytes().replace(b"weighs", b"weight"))
    with pytest.raises(ValueError, match=r'damaged: column "weight" occurs twice; export again$'):
        drt.CachedDataset.from_config(config)


MISFITS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    'column "cache_id", row 0: found 7,': lambda t: t.with_columns(cache_id=pl.lit(7, dtype=pl.UInt64)),
    'column "sample_id", row 0: found 99,': lambda t: t.with_columns(sample_id=pl.lit(99, dtype=pl.UInt64)),
    'column "whole" is missing; correct': lambda t: t.drop("whole"),
    'column "whole": expected .* found [^;]*; correct': lambda t: t.with_columns(whole=pl.lit(1.5)),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_e01_table_of_other_caches_does_not_fit(
    runtime: drt.DatasetRuntime, paths: list[Path], out: Path, misfit: str
) -> None:
    dataset = opened(runtime, paths)
    config = dataset.dump_config(out)
    with_table(config, MISFITS[misfit](dataset.get_metadata()))
    with pytest.raises(ValueError, match=f"the exported table does not fit the caches, .*{misfit}") as raised:
        drt.CachedDataset.from_config(config)
    assert str(raised.value).endswith("; correct cache_paths in dataset.json, or export again")


def test_e01_cache_path_that_is_a_file_is_no_directory(
    runtime: drt.DatasetRuntime, paths: list[Path], out: Path
) -> None:
    config = opened(runtime, paths).dump_config(out)
    shutil.rmtree(paths[1])
    paths[1].write_text("file")
    with pytest.raises(NotADirectoryError, match="correct cache_paths in") as raised:
        drt.CachedDataset.from_config(config)
    assert raised.value.filename == str(paths[1])
    assert str(config) in str(raised.value)


def test_e01_empty_path_is_no_place_for_an_export(
    runtime: drt.DatasetRuntime, paths: list[Path], out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(out)
    with pytest.raises(ValueError, match="path must name a file or a directory, found an empty text"):
        opened(runtime, paths).dump_config("")
    assert list(out.iterdir()) == []
