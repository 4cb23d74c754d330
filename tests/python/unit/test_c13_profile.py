"""C13: the summary of where a write spent its time, also of one that did not end well."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes.sources import Moving
from support import QUIET, Failing, numbered

import dataset_rt as drt

STAGES = [
    "python_next",
    "python_extract",
    "ingress_wait",
    "metadata_validate",
    "record_encode",
    "compression",
    "disk_write",
    "shard_flush",
    "finish_index",
    "finish_metadata",
    "finish_manifest",
    "publish",
]


def profiled(path: Path, **settings: Any) -> drt.WriterConfig:
    return QUIET.model_copy(update={"profiler": drt.WriterProfilerConfig(enabled=True, path=path), **settings})


def stages(path: Path) -> dict[str, list[str]]:
    """Stages of each source; checks the form of the report on the way."""
    report = json.loads(path.read_text())
    assert list(report) == ["format_version", "elapsed_ns", "sources"]
    assert report["format_version"] == 1
    for source in report["sources"]:
        assert list(source) == ["source_name", "stages"]
        for stage in source["stages"]:
            assert list(stage) == ["name", "calls", "total_ns", "bytes"]
            assert stage["calls"] > 0
            # No stage runs on more threads than there are: two workers and the caller.
            assert 0 < stage["total_ns"] <= 3 * report["elapsed_ns"]
    return {source["source_name"]: [stage["name"] for stage in source["stages"]] for source in report["sources"]}


def test_c13_report_names_every_stage_that_ran(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    path = tmp_path / "not" / "there" / "profile.json"
    config = profiled(path, shard_compression=drt.ShardCompression(algo="lz4"))
    runtime.write_cache([numbered("a", 700), numbered("b", 5)], tmp_path, writer_config=config)
    found = stages(path)
    assert list(found) == ["a", "b"]
    for names in found.values():
        assert set(STAGES) - set(names) <= {"ingress_wait"}
        assert names == [name for name in STAGES if name in names]


@pytest.mark.parametrize("error", [ValueError("failed"), KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_c13_report_is_written_after_failures(
    runtime: drt.DatasetRuntime, tmp_path: Path, error: BaseException
) -> None:
    path = tmp_path / "profile.json"
    sources = [numbered("a", 600), Failing("bad", error, [(bytes(1000), {"row": row}) for row in range(600)])]
    try:
        runtime.write_cache(sources, tmp_path / "caches", writer_config=profiled(path))
    except (KeyboardInterrupt, SystemExit):
        assert not isinstance(error, Exception)
    found = stages(path)
    assert "publish" in found["a"]
    assert "publish" not in found["bad"]
    assert {"python_next", "python_extract"} <= set(found["bad"])


INTERRUPTED = """
import itertools, sys
from pathlib import Path
import dataset_rt as drt
from support import Listed

def endless():
    for row in itertools.count():
        yield bytes(1000), {"row": row}
        if row == 5000:
            Path(sys.argv[1], "writing").touch()

profiler = drt.WriterProfilerConfig(enabled=True, path=Path(sys.argv[1], "profile.json"))
config = drt.WriterConfig(show_progress=False, profiler=profiler)
with drt.DatasetRuntime(num_workers=2) as runtime:
    runtime.write_cache(Listed("endless", endless()), Path(sys.argv[1], "caches"), writer_config=config)
"""


def test_c13_report_is_written_after_ctrl_c(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        while not (tmp_path / "writing").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=240)
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert {"python_next", "record_encode", "disk_write"} <= set(stages(tmp_path / "profile.json")["endless"])
    assert list((tmp_path / "caches" / "tmp").iterdir()) == []


@pytest.mark.parametrize("path", ["folder", "folder/.."])
def test_c13_a_directory_is_refused_before_anything_is_written(
    runtime: drt.DatasetRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="profiler path must be a file, found the directory"):
        runtime.write_cache(numbered("a", 1), "caches", writer_config=profiled(Path(path)))
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_c13_a_relative_path_is_that_of_the_call(
    runtime: drt.DatasetRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runtime.write_cache(Moving("a", str(tmp_path)), "caches", writer_config=profiled(Path("profile.json")))
    assert list(stages(tmp_path / "profile.json")) == ["a"]


def test_c13_a_pipe_is_refused_and_stays(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match=f"profiler path must be a regular file or a new one, found .* {pipe};"):
        runtime.write_cache(numbered("a", 1), tmp_path / "caches", writer_config=profiled(pipe))
    assert [entry.is_fifo() for entry in tmp_path.iterdir()] == [True]


def test_c13_a_report_that_is_replaced_keeps_its_mode(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.touch(mode=0o600)
    runtime.write_cache(numbered("a", 1), tmp_path / "caches", writer_config=profiled(path))
    assert (list(stages(path)), path.stat().st_mode & 0o777) == (["a"], 0o600)
