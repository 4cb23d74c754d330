"""D1, D2, D3: opening caches."""

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support import Listed, numbered, numbers, opened, run_python, write

import dataset_rt as drt

CONFIG = drt.ReaderConfig(seed=1, shuffle=False)


def damage(file: Path, offset: int, byte: int | None = None) -> None:
    """Change one byte of a file in place."""
    content = bytearray(file.read_bytes())
    content[offset] = content[offset] ^ 0xFF if byte is None else byte
    file.write_bytes(content)


def test_d01_opening_does_not_touch_payloads(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 10, size=1000))
    shard = path / "shards" / "000000.bin"
    shard.write_bytes(os.urandom(shard.stat().st_size))
    assert len(opened(runtime, [path])) == 10


def test_d01_cost_of_opening_does_not_grow_with_rows(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    paths = write(runtime, tmp_path, numbered("few", 10), numbered("many", 200_000))
    seconds = []
    for path in paths:
        best = float("inf")
        for _ in range(7):
            started = time.perf_counter()
            opened(runtime, [path])
            best = min(best, time.perf_counter() - started)
        seconds.append(best)
    assert seconds[1] < 5 * seconds[0] + 0.005


USE_ALL = """
import sys
import dataset_rt as drt

config = drt.ReaderConfig(seed=1, validate_cache=True)
with drt.DatasetRuntime(num_workers=2) as runtime, runtime.cached_dataset([sys.argv[1]], reader_config=config) as dataset:
    dataset.update_metadata(dataset.get_metadata().head(7))
    print(sum(1 for _ in dataset))
"""


def test_d01_a_cache_that_cannot_be_written_opens_and_stays_as_it_is(
    runtime: drt.DatasetRuntime, tmp_path: Path
) -> None:
    def state() -> list[tuple[str, int, int]]:
        files = sorted(tmp_path.rglob("*"))
        return [(str(file), file.lstat().st_mtime_ns, file.lstat().st_ctime_ns) for file in files]

    [path] = write(runtime, tmp_path, numbered("a", 300, size=1000))
    before = state()
    assert run_python(USE_ALL, str(path)).stdout == "7\n"
    assert state() == before

    # A mount that is read-only for everybody, root included.
    mount = f"mount --bind {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path}"
    shell = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*shell, mount], capture_output=True).returncode != 0:
        pytest.skip("this system does not let tests mount")
    command = f"{mount} && ! touch {tmp_path}/x 2>/dev/null && exec {sys.executable} -c '{USE_ALL}' {path}"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run([*shell, command], env=environment, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", "")


@pytest.mark.parametrize("change", [-1, 1])
def test_d01_shard_of_another_length_is_refused(runtime: drt.DatasetRuntime, tmp_path: Path, change: int) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 10))
    shard = path / "shards" / "000000.bin"
    os.truncate(shard, shard.stat().st_size + change)
    with pytest.raises(ValueError, match=r"000000\.bin"):
        opened(runtime, [path])


def test_d02_missing_directory_is_file_not_found(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        opened(runtime, [tmp_path / "nowhere"])
    assert raised.value.filename == str(tmp_path / "nowhere")


def test_d02_directory_without_manifest_is_a_value_error(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"missing manifest"):
        opened(runtime, [tmp_path])


def test_d02_file_is_no_directory(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError, match="pass the directory of one cache") as raised:
        opened(runtime, [tmp_path / "file"])
    assert (raised.value.errno, raised.value.filename) == (errno.ENOTDIR, str(tmp_path / "file"))


FILES = ["manifest.json", "metadata.arrow", "index.bin", "checksums.bin", "shards/000000.bin"]


@pytest.mark.parametrize("file", FILES)
def test_g_what_is_no_file_in_a_cache_is_told(runtime: drt.DatasetRuntime, tmp_path: Path, file: str) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 3))
    place = path / file
    content = place.read_bytes()
    place.unlink()
    place.mkdir()
    with pytest.raises(IsADirectoryError) as raised:
        opened(runtime, [path], validate_cache=True)
    assert (raised.value.errno, raised.value.filename) == (errno.EISDIR, str(place))
    place.rmdir()
    os.mkfifo(place)
    with pytest.raises(ValueError, match="expected a regular file, found a named pipe") as told:
        opened(runtime, [path], validate_cache=True)
    assert str(place) in str(told.value)
    place.unlink()
    with pytest.raises(ValueError if file == "manifest.json" else FileNotFoundError):
        opened(runtime, [path], validate_cache=True)
    place.write_bytes(content)
    assert len(opened(runtime, [path], validate_cache=True)) == 3


@pytest.mark.parametrize("paths", ["caches/a", b"caches/a", Path("caches/a"), None, 3, {"a"}, iter(["a"])], ids=repr)
def test_d02_paths_are_a_sequence(runtime: drt.DatasetRuntime, paths: Any) -> None:
    with pytest.raises(TypeError, match="paths must be a sequence of str or Path"):
        runtime.cached_dataset(paths, reader_config=CONFIG)


@pytest.mark.parametrize("path", [None, 3, b"a", [], numbered("a", 1)], ids=lambda path: type(path).__name__)
def test_d02_each_path_is_a_str_or_path(runtime: drt.DatasetRuntime, path: Any) -> None:
    with pytest.raises(TypeError, match=r"paths\[1\] must be str or Path, found"):
        runtime.cached_dataset(["a", path], reader_config=CONFIG)


def test_d02_no_path_and_a_path_with_nul_are_value_errors(runtime: drt.DatasetRuntime) -> None:
    with pytest.raises(ValueError, match="at least one cache"):
        runtime.cached_dataset([], reader_config=CONFIG)
    with pytest.raises(ValueError, match=r"NUL|null"):
        runtime.cached_dataset(["a\0b"], reader_config=CONFIG)


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("text", [str, Path])
def test_d02_sequences_of_both_kinds_of_paths_open(
    runtime: drt.DatasetRuntime, tmp_path: Path, kind: Any, text: Any
) -> None:
    paths = write(runtime, tmp_path, numbered("a", 2), numbered("b", 2))
    dataset = runtime.cached_dataset(kind(map(text, paths)), reader_config=CONFIG)
    assert dataset.cache_paths == paths
    assert numbers(dataset) == [0, 1, 0, 1]


def test_d02_paths_are_resolved_at_open(
    runtime: drt.DatasetRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    [path] = write(runtime, Path("base"), numbered("a", 3))
    assert path == tmp_path / "base" / "a"
    path = Path("base/a")
    dataset = opened(runtime, [path])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert dataset.cache_paths == [tmp_path / "base" / "a"]
    assert numbers(dataset) == [0, 1, 2]


def test_d02_two_caches_with_one_id_are_refused(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 3))
    shutil.copytree(path, tmp_path / "copy")
    with pytest.raises(ValueError, match="cache_id") as raised:
        opened(runtime, [path, tmp_path / "copy"])
    assert "copy" in str(raised.value)


def test_d02_columns_may_come_in_any_order_but_share_names_and_kinds(
    runtime: drt.DatasetRuntime, tmp_path: Path
) -> None:
    paths = write(
        runtime,
        tmp_path,
        Listed("a", [(b"", {"x": 1, "y": "t"})]),
        Listed("b", [(b"", {"y": "t", "x": 1})]),
        Listed("kind", [(b"", {"x": 1.0, "y": "t"})]),
        Listed("more", [(b"", {"x": 1, "y": "t", "z": 1})]),
        Listed("name", [(b"", {"x": 1, "z": "t"})]),
    )
    assert len(opened(runtime, paths[:2])) == 2
    for path in paths[2:]:
        with pytest.raises(ValueError, match=path.name):
            opened(runtime, [paths[0], path])


@pytest.mark.parametrize("file", FILES)
def test_d03_validation_names_the_damaged_file(runtime: drt.DatasetRuntime, tmp_path: Path, file: str) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 10, size=100))
    assert len(opened(runtime, [path], validate_cache=True)) == 10
    content = (path / file).read_bytes()
    # A digit of the manifest, where it would not be noticed otherwise; the end of the last payload.
    offset = content.index(b'"ratio": 1.0') + 11 if file == "manifest.json" else -1
    damage(path / file, offset, ord("5") if file == "manifest.json" else None)
    with pytest.raises(ValueError, match=Path(file).name):
        opened(runtime, [path], validate_cache=True)


def test_d03_validation_takes_little_memory(tmp_path: Path) -> None:
    rows = [(bytes([row]) * (40 << 20), {"row": row}) for row in range(3)]
    with drt.DatasetRuntime(num_workers=4) as runtime:
        [path] = write(runtime, tmp_path, Listed("a", rows))
    program = """
import pathlib, sys
import dataset_rt as drt

def peak_kib():
    return next(int(line.split()[1]) for line in pathlib.Path("/proc/self/status").open() if line.startswith("VmHWM"))

runtime = drt.DatasetRuntime(num_workers=4)
before = peak_kib()
runtime.cached_dataset([sys.argv[1]], reader_config=drt.ReaderConfig(seed=1, validate_cache=True))
print(peak_kib() - before)
"""
    # A quarter of a megabyte for each thread, and what the library takes anyway.
    assert int(run_python(program, str(path)).stdout) < 16 << 10


def test_d03_validation_names_the_damaged_sample(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 10, size=100))
    damage(path / "shards" / "000000.bin", -150)
    with pytest.raises(ValueError, match="sample 8"):
        opened(runtime, [path], validate_cache=True)


def test_d03_unknown_versions_are_refused(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 1))
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | {"format_version": 4}))
    with pytest.raises(ValueError, match="format_version") as raised:
        opened(runtime, [path])
    assert "manifest.json" in str(raised.value)
