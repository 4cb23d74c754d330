"""C10: full, limited, read-only and missing places. Each single operation that fails is `tests/write_faults.rs`."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from support import QUIET, numbered, run_python, write_error

import dataset_rt as drt

ROOT_UID = 0
NOBODY = 65534

# Writes a source that needs some megabytes, then one that needs next to nothing.
PROGRAM = """
import json, os, resource, sys
from pathlib import Path
import dataset_rt as drt
from support import QUIET, numbered

if __name__ == "__main__":
    base, processes, limit = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    config = QUIET.model_copy(update={"num_processes": processes})
    with drt.DatasetRuntime(num_workers=2) as runtime:
        results = runtime.write_cache(numbered("large", 60, size=100_000), base, writer_config=config)
        results += runtime.write_cache(numbered("small", 3), base, writer_config=config)
    staging = base / "tmp"
    left = sorted(str(path.relative_to(base)) for path in base.glob("*")), sorted(map(str, staging.glob("*")))
    print(json.dumps([getattr(result, "message", "written") for result in results] + [*left]))
"""


def can_mount() -> bool:
    """Whether this user may mount a file system of its own."""
    wanted = [*NAMESPACE, "mount -t tmpfs tmpfs /mnt"]
    return shutil.which("unshare") is not None and subprocess.run(wanted, capture_output=True).returncode == 0


# Mounts are seen by this one process only, and go with it.
NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
needs_mount = pytest.mark.skipif(not can_mount(), reason="this user may not mount file systems here")


def run(tmp_path: Path, mount: str, *arguments: Any) -> list[Any]:
    """Run the program in a mount namespace of its own where `mount` was done."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    command = " ".join([mount, "exec", sys.executable, str(file), *map(str, arguments)])
    done = subprocess.run(
        [*(NAMESPACE if mount else ["sh", "-c"]), command],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return list(json.loads(done.stdout))


@needs_mount
@pytest.mark.parametrize("processes", [0, 1])
def test_c10_full_disk_is_the_error_of_its_source(tmp_path: Path, processes: int) -> None:
    base = tmp_path / "disk"
    base.mkdir()
    large, small, entries, staging = run(tmp_path, f"mount -t tmpfs -o size=3m tmpfs {base} &&", base, processes, 0)
    assert "No space left on device" in large
    assert f"{base}/tmp/" in large
    assert (small, entries, staging) == ("written", ["small", "tmp"], [])


@pytest.mark.parametrize("processes", [0, 1])
def test_c10_limit_on_file_sizes_is_the_error_of_its_source(tmp_path: Path, processes: int) -> None:
    base = tmp_path / "base"
    large, small, entries, staging = run(tmp_path, "", base, processes, 300_000)
    assert "File too large" in large
    assert f"{base}/tmp/" in large
    assert (small, entries, staging) == ("written", ["small", "tmp"], [])


@needs_mount
def test_c10_read_only_file_system_is_named(tmp_path: Path) -> None:
    base = tmp_path / "disk"
    base.mkdir()
    large, small, *left = run(tmp_path, f"mount -t tmpfs -o ro tmpfs {base} &&", base, 0, 0)
    for message in (large, small):
        assert "Read-only file system" in message
        assert str(base) in message
    assert left == [[], []]


@pytest.mark.skipif(os.getuid() != ROOT_UID, reason="only root can become somebody else")
def test_c10_directory_of_somebody_else_is_named() -> None:
    program = (
        "import os, sys, dataset_rt as drt\n"
        "from support import QUIET, numbered\n"
        f"os.seteuid({NOBODY})\n"
        "with drt.DatasetRuntime(num_workers=1) as runtime:\n"
        "    print(runtime.write_cache(numbered('a', 1), sys.argv[1], writer_config=QUIET)[0].message)\n"
    )
    # Directories of pytest are closed to others, which would be another error.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        done = run_python(program, folder)
        assert list(Path(folder).iterdir()) == []
    assert (done.returncode, done.stderr) == (0, "")
    assert "Permission denied" in done.stdout
    assert str(Path(folder, "tmp")) in done.stdout


@pytest.mark.skipif(os.getuid() != ROOT_UID, reason="only root can become somebody else")
def test_c10_a_cache_that_may_not_be_read_is_told_as_such(runtime: drt.DatasetRuntime) -> None:
    program = (
        "import os, sys, dataset_rt as drt\n"
        "from support import QUIET, numbered\n"
        f"os.seteuid({NOBODY})\n"
        "with drt.DatasetRuntime(num_workers=1) as runtime:\n"
        "    print(runtime.write_cache(numbered('a', 1), sys.argv[1], writer_config=QUIET)[0].message)\n"
        "    reader_config = drt.ReaderConfig(seed=1)\n"
        "    given = {'reader_config': reader_config, 'writer_config': QUIET}\n"
        "    print(runtime.from_cache_sources(numbered('a', 1), sys.argv[1], **given).results[0].message)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        runtime.write_cache(numbered("a", 1), folder, writer_config=QUIET)
        cache = Path(folder, "a")
        cache.chmod(0o700)
        done = run_python(program, folder)
        assert (done.returncode, done.stderr) == (0, "")
        written, reused = done.stdout.splitlines()
        assert written.startswith(f"{cache}: already exists: cannot read what is in it, permission denied")
        assert reused.startswith(f"cannot read {cache}/manifest.json: Permission denied")


@pytest.mark.skipif(os.getuid() == ROOT_UID, reason="root may write everywhere")
def test_c10_directory_without_permission_is_named(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir(mode=0o555)
    message = write_error(runtime, base, numbered("a", 1))
    assert "Permission denied" in message
    assert str(base / "tmp") in message


def test_c10_missing_directories_are_made(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    base = tmp_path / "not" / "there" / "yet"
    [result] = runtime.write_cache(numbered("a", 1), base, writer_config=QUIET)
    assert result == drt.CacheWriteSuccess("a", base / "a")


@pytest.mark.parametrize("where", ["base", "base/tmp", "above the base"])
def test_c10_file_where_a_directory_should_be_is_named(runtime: drt.DatasetRuntime, tmp_path: Path, where: str) -> None:
    base = tmp_path / "base" / "caches" if where == "above the base" else tmp_path / "base"
    file = base / "tmp" if where == "base/tmp" else tmp_path / "base"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"mine")
    message = write_error(runtime, base, numbered("a", 1))
    assert str(file) in message
    assert "not a directory" in message.lower()
    assert file.read_bytes() == b"mine"
