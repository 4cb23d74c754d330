"""E1: `update_manifests`, and manifests of other versions."""

import json
import os
import re
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from support import numbered, numbers, opened, run_python, write

import dataset_rt as drt


def rewrite(path: Path, **changes: Any) -> Path:
    """Change keys of a manifest; `None` removes one. Its own checksum goes."""
    file = path / "manifest.json"
    content = json.loads(file.read_bytes()) | changes
    content.pop("manifest_checksum", None)
    content = {key: value for key, value in content.items() if value is not None}
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")
    return path


def version_2(runtime: drt.DatasetRuntime, base: Path, *names: str) -> list[Path]:
    paths = write(runtime, base, *(numbered(name, 3) for name in names))
    return [rewrite(path, format_version=2, cache_id=None) for path in paths]


@pytest.mark.parametrize("version", [2, 4, -3, 3.0, True, "3", None, [3]])
def test_e01_any_other_version_is_an_error_without_a_path(
    runtime: drt.DatasetRuntime, tmp_path: Path, version: Any
) -> None:
    paths = version_2(runtime, tmp_path, "a")
    before = (paths[0] / "manifest.json").read_bytes()
    match opened(runtime, paths).update_manifests(version):
        case drt.Err(drt.ManifestUpdateError(drt.AbsentManifestTarget(reason), message, ())):
            assert f"version must be 3, found {version!r}" in reason
            assert reason in message
        case other:
            pytest.fail(repr(other))
    assert (paths[0] / "manifest.json").read_bytes() == before


def test_e01_ids_outlive_the_order_of_paths(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    paths = version_2(runtime, tmp_path, "c", "a")
    [path] = write(runtime, tmp_path, numbered("new", 2))
    new_id = json.loads((path / "manifest.json").read_bytes())["cache_id"]
    dataset = opened(runtime, [*paths, path])
    table = dataset.get_metadata()
    iterator = iter(dataset)
    first = next(iterator)

    def expected(*statuses: str) -> object:
        entries = zip([*paths, path], [0, 1, new_id], statuses, strict=True)
        report = (drt.ManifestUpdateEntry(p / "manifest.json", i, s) for p, i, s in entries)  # type: ignore[arg-type]
        return drt.Ok(drt.ManifestUpdateReport(tuple(report)))

    assert dataset.update_manifests(version=3) == expected("updated", "updated", "unchanged")
    assert dataset.update_manifests(3) == expected("unchanged", "unchanged", "unchanged")
    # The dataset itself goes on as it was.
    assert numbers([first, *iterator]) == [0, 1, 2, 0, 1, 2, 0, 1]
    assert dataset.get_metadata().equals(table)
    backwards = opened(runtime, [path, *paths[::-1]], validate_cache=True)
    backwards.update_metadata(table)
    assert numbers(backwards) == [0, 1, 2, 0, 1, 2, 0, 1]


def test_e01_stopped_update_names_manifest_and_reason(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    paths = version_2(runtime, tmp_path, "a", "b")
    dataset = opened(runtime, paths)
    shutil.move(paths[1], tmp_path / "moved")
    match dataset.update_manifests(version=3):
        case drt.Err(drt.ManifestUpdateError(path, message, entries)):
            assert path == paths[1] / "manifest.json"
            assert "No such file" in message
            assert str(path) in message
            assert entries == ()
        case other:
            pytest.fail(repr(other))
    assert json.loads((paths[0] / "manifest.json").read_bytes())["format_version"] == 2
    shutil.move(tmp_path / "moved", paths[1])
    assert isinstance(dataset.update_manifests(version=3), drt.Ok)
    assert json.loads((paths[1] / "manifest.json").read_bytes())["cache_id"] == 1


def test_e01_closed_dataset_raises(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    dataset = opened(runtime, version_2(runtime, tmp_path, "a"))
    dataset.close()
    with pytest.raises(RuntimeError, match="closed"):
        dataset.update_manifests(version=3)


# Root may do everything: both tests give that up in a process of their own.
AS_NOBODY = """
import os, sys
from pathlib import Path
import dataset_rt as drt
base, mode = Path(sys.argv[1]), int(sys.argv[2], 8)
runtime = drt.DatasetRuntime(num_workers=1)
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
dataset = runtime.cached_dataset([base / "a", base / "b"], reader_config=drt.ReaderConfig(seed=1))
(base / "b").chmod(mode)
print(dataset.update_manifests(version=3))
"""


def as_nobody(runtime: drt.DatasetRuntime, tmp_path: Path, mode: int) -> tuple[str, list[int]]:
    """Migrate two caches, the directory of the second one having this mode; return the outcome and both versions."""
    paths = version_2(runtime, tmp_path, "a", "b")
    if os.geteuid() == 0:
        for file in [tmp_path, *tmp_path.rglob("*")]:
            os.chown(file, 65534, 65534)
        for parent in tmp_path.parents:
            if parent.owner() == "root" and parent != Path("/"):
                parent.chmod(parent.stat().st_mode | stat.S_IXOTH)
    result = run_python(AS_NOBODY, str(tmp_path), oct(mode))
    paths[1].chmod(0o755)
    assert result.returncode == 0, result.stderr
    assert all(not file.name.startswith(".") for path in paths for file in path.iterdir())
    return result.stdout, [json.loads((path / "manifest.json").read_bytes())["format_version"] for path in paths]


def test_e01_directory_that_cannot_be_synced_leaves_durability_unknown(
    runtime: drt.DatasetRuntime, tmp_path: Path
) -> None:
    outcome, versions = as_nobody(runtime, tmp_path, 0o300)
    assert outcome.startswith("Ok(")
    assert "cache_id=0, status='updated'" in outcome
    assert "cache_id=1, status='durability_unknown'" in outcome
    assert versions == [3, 3]


def test_e01_directory_that_cannot_be_written_is_found_before_anything_is_replaced(
    runtime: drt.DatasetRuntime, tmp_path: Path
) -> None:
    outcome, versions = as_nobody(runtime, tmp_path, 0o500)
    assert outcome.startswith("Err(")
    assert f"cannot create a file in {tmp_path / 'b'}: Permission denied" in outcome
    assert f"{tmp_path / 'b' / 'manifest.json'}" in outcome
    assert "entries=()" in outcome
    assert versions == [2, 2]


def test_e01_manifest_keeps_what_this_process_may_give_away(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only the superuser can make files of others")
    paths = version_2(runtime, tmp_path, "a", "b")
    for path in paths:
        os.chown(path, 65534, 65534)
        # Of somebody else: one of a group that the process will be in, one of another.
        os.chown(path / "manifest.json", 1, 65532 if path.name == "a" else 1)
        (path / "manifest.json").chmod(0o644)
    for parent in tmp_path.parents:
        if parent.owner() == "root" and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | stat.S_IXOTH)
    tmp_path.chmod(0o755)
    program = AS_NOBODY.replace("os.setgid(65534)", "os.setgroups([65532]); os.setgid(65534)")
    assert run_python(program, str(tmp_path), "0o755").stdout.startswith("Ok(")
    found = [(path / "manifest.json").stat() for path in paths]
    assert [(file.st_uid, file.st_gid, file.st_mode & 0o7777) for file in found] == [
        (65534, 65532, 0o644),
        (65534, 65534, 0o644),
    ]


def test_e01_migration_outlives_a_kill_between_two_manifests(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    paths = version_2(runtime, tmp_path, "a", "b")
    # What such a kill leaves: the first migrated, the second not, and a file in the making.
    program = """
import os, signal, sys
from pathlib import Path
import dataset_rt as drt
paths = [Path(path) for path in sys.argv[1:]]
runtime = drt.DatasetRuntime(num_workers=1)
dataset = runtime.cached_dataset(paths, reader_config=drt.ReaderConfig(seed=1))
first = drt.DatasetRuntime(num_workers=1).cached_dataset(paths[:1], reader_config=drt.ReaderConfig(seed=1))
assert isinstance(first.update_manifests(version=3), drt.Ok)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run_python(program, *map(str, paths)).returncode == -9
    (paths[1] / ".drt-1-0.tmp").write_text("half")
    outcome = opened(runtime, paths).update_manifests(version=3)
    assert isinstance(outcome, drt.Ok)
    assert [(entry.cache_id, entry.status) for entry in outcome.value.entries] == [(0, "unchanged"), (1, "updated")]


def test_e01_two_caches_migrated_separately_are_told_apart(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    paths = version_2(runtime, tmp_path, "a", "b")
    for path in paths:
        assert isinstance(opened(runtime, [path]).update_manifests(version=3), drt.Ok)
    with pytest.raises(ValueError, match="migrated in separate calls") as raised:
        opened(runtime, paths)
    assert "write one of them again" in str(raised.value)
    assert all(str(path) in str(raised.value) for path in paths)
    # As the message says.
    shutil.rmtree(paths[1])
    write(runtime, tmp_path, numbered("b", 3))
    assert len(opened(runtime, paths)) == 6


@pytest.mark.parametrize("change", [{}, {"cache_id": "new", "shards": {"more": 1}, "metadata_schema": 5}])
def test_e01_manifest_of_an_unknown_version_says_so(
    runtime: drt.DatasetRuntime, tmp_path: Path, change: dict[str, Any]
) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 3))
    rewrite(path, format_version=4, **change)
    with pytest.raises(ValueError, match=r'"format_version" 4, but this release reads versions 2 and 3') as raised:
        opened(runtime, [path])
    assert str(path / "manifest.json") in str(raised.value)
    # A reader that would take it for something else must not write over it either.
    [result] = runtime.write_cache([numbered("a", 3)], tmp_path, writer_config=drt.WriterConfig(show_progress=False))
    assert isinstance(result, drt.CacheWriteError)


def test_e01_unknown_keys_of_a_manifest_are_ignored(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 3))
    content = json.loads((path / "manifest.json").read_bytes())
    shards = [{**shard, "new": None} for shard in content["shards"]]
    schema = [{**field, "unit": "m"} for field in content["metadata_schema"]]
    rewrite(path, shards=shards, metadata_schema=schema, new={"a": [1]}, record_count=0.5)
    assert numbers(opened(runtime, [path], validate_cache=True)) == [0, 1, 2]


@pytest.mark.parametrize("kind", ["same directory", "linked directory", "linked manifest", "chain"])
def test_e01_one_manifest_for_two_caches_is_refused_before_anything_is_written(
    runtime: drt.DatasetRuntime, tmp_path: Path, kind: str
) -> None:
    first, *_ = paths = version_2(runtime, tmp_path, "a", "b")
    if kind == "same directory":
        second = first
    elif kind == "linked directory":
        second = tmp_path / "link"
        second.symlink_to("a")
    else:
        second = paths[1]
        (second / "manifest.json").unlink()
        target = first / "manifest.json"
        if kind == "chain":
            (tmp_path / "step").symlink_to(target)
            target = tmp_path / "step"
        (second / "manifest.json").symlink_to(target)
    [other] = version_2(runtime, tmp_path, "other")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.json")}
    dataset = opened(runtime, [other, first, second])
    match dataset.update_manifests(version=3):
        case drt.Err(drt.ManifestUpdateError(path, message, entries)):
            assert path == first / "manifest.json"
            assert f"found one for both {first} and {second.resolve()}; open each cache once" in message
            assert entries == ()
        case refused:
            pytest.fail(repr(refused))
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.json")} == before


def test_e01_hard_links_of_a_manifest_become_files_of_their_own(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    paths = version_2(runtime, tmp_path, "a", "b")
    (paths[1] / "manifest.json").unlink()
    (paths[1] / "manifest.json").hardlink_to(paths[0] / "manifest.json")
    assert isinstance(opened(runtime, paths).update_manifests(version=3), drt.Ok)
    assert [json.loads((path / "manifest.json").read_bytes())["cache_id"] for path in paths] == [0, 1]


def test_e01_what_killed_migrations_leave_is_removed_by_the_next(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    paths = version_2(runtime, tmp_path, "a", "b")
    ended = int(run_python("import os; print(os.getpid())").stdout)
    kept = [
        f".drt-{os.getpid()}-9999.tmp",
        f".drt-{ended}-1",
        f".drt-{ended}-x.tmp",
        f"drt-{ended}-1.tmp",
        ".drt-1-.tmp",
    ]
    for path in paths:
        for name in [*kept, f".drt-{ended}-0.tmp", f".drt-{ended}-17.tmp"]:
            (path / name).write_text("half")
        (path / f".drt-{ended}-2.tmp").mkdir()
    kept.append(f".drt-{ended}-2.tmp")
    assert isinstance(opened(runtime, paths).update_manifests(version=3), drt.Ok)
    for path in paths:
        assert sorted(file.name for file in path.iterdir() if "drt-" in file.name) == sorted(kept)


@pytest.mark.parametrize("version", ["4", True, [3], 2.5])
def test_e01_version_of_another_type_names_the_key_and_what_is_read(
    runtime: drt.DatasetRuntime, tmp_path: Path, version: Any
) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 3))
    rewrite(path, format_version=version)
    told = f'"format_version" {json.dumps(version)}, but this release reads versions 2 and 3'
    with pytest.raises(ValueError, match=re.escape(told)):
        opened(runtime, [path])
    rewrite(path, format_version=None)
    with pytest.raises(ValueError, match='no key "format_version", of which this release reads 2 and 3'):
        opened(runtime, [path])
