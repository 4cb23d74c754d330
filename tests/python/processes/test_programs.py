"""Whole programs that use worker processes: without a main guard, from standard input, in daemonic and forked processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes.watching import TESTS, alive, program, wait_for

BODY = """
import sys
import dataset_rt as drt
from processes.sources import Numbered

def write():
    runtime = drt.DatasetRuntime(num_workers=1)
    config = drt.WriterConfig(num_processes=3, show_progress=False)
    for result in runtime.write_cache([Numbered(name, 3) for name in "abc"], sys.argv[1], writer_config=config):
        print(getattr(result, "message", "written"))
"""


def run(base: Path, text: str, *, how: str = "file") -> "subprocess.CompletedProcess[str]":
    file = base / "program.py"
    file.write_text(text)
    arguments = {"file": [str(file)], "text": ["-c", text], "input": ["-"]}[how]
    return subprocess.run(
        [sys.executable, *arguments, str(base / "caches")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        input=text if how == "input" else None,
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_c11_main_guard_lets_every_source_be_written(tmp_path: Path) -> None:
    done = run(tmp_path, BODY + "if __name__ == '__main__':\n    write()\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "written\n" * 3, "")


def test_c11_missing_main_guard_is_told_once_and_soon(tmp_path: Path) -> None:
    started = time.monotonic()
    done = run(tmp_path, BODY + "write()\n")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    # One for each source; one of them held the source that could not be begun.
    assert len(lines) == 3
    assert all("found no main guard" in line and '`if __name__ == "__main__":`' in line for line in lines)
    assert sum(line.startswith("not run: ") for line in lines) == 2
    assert not (tmp_path / "caches").exists()
    assert time.monotonic() - started < 30


def test_c11_program_without_a_file_can_send_importable_sources(tmp_path: Path) -> None:
    done = run(tmp_path, BODY + "write()\n", how="text")
    assert (done.returncode, done.stdout, done.stderr) == (0, "written\n" * 3, "")


def test_c11_classes_of_a_program_without_a_file_are_refused_for_their_source(tmp_path: Path) -> None:
    text = BODY.replace("def write", "class Mine(Numbered): pass\n\ndef write").replace("Numbered(name", "Mine(name")
    done = run(tmp_path, text + "write()\n", how="text")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr, len(lines)) == (0, "", 3)
    assert all("cannot be loaded in a worker process" in line and "python -c" in line for line in lines)


def test_c11_program_from_standard_input_is_refused_quietly(tmp_path: Path) -> None:
    done = run(tmp_path, BODY + "if __name__ == '__main__':\n    write()\n", how="input")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr, len(lines)) == (0, "", 3)
    assert all("can import the main module, because <stdin> is no file" in line for line in lines)


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_c11_daemonic_process_is_refused(tmp_path: Path, method: str) -> None:
    text = BODY + (
        "import multiprocessing\n"
        "if __name__ == '__main__':\n"
        f"    with multiprocessing.get_context('{method}').Pool(1) as pool:\n"
        "        pool.apply(write)\n"
    )
    done = run(tmp_path, text)
    assert "RuntimeError: num_processes > 0 is not possible in a daemonic process" in done.stderr
    assert not (tmp_path / "caches").exists()


def test_b04_runtime_inherited_by_a_forked_process_is_refused(tmp_path: Path) -> None:
    text = BODY.replace("def write():\n    runtime = drt", "runtime = drt").replace("    config =", "config =")
    text = text.replace("    for result", "def write():\n    for result") + (
        "import os\n"
        "if __name__ == '__main__':\n"
        "    write()\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        write()\n"
        "    else:\n"
        "        print('child', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)\n"
    )
    done = run(tmp_path, text)
    assert done.stdout.splitlines()[-1] == "child 1"
    assert "RuntimeError" in done.stderr


INTERRUPTED = """
import pathlib
import sys
import dataset_rt as drt
from processes.sources import Endless, Numbered

if __name__ == "__main__":
    base = pathlib.Path(sys.argv[1])
    first = Endless if sys.argv[2] == "endless" else Numbered
    sources = [Numbered("a", 300), first("b", base if first is Endless else 300), Numbered("c", 300)]
    config = drt.WriterConfig(num_processes=int(sys.argv[3]), show_progress=False)
    print(drt.DatasetRuntime(num_workers=2).write_cache(sources, base, writer_config=config))
"""


@pytest.mark.parametrize("to_group", [True, False])
def test_c11_ctrl_c_removes_what_children_left_unfinished(tmp_path: Path, to_group: bool) -> None:
    file, base = tmp_path / "program.py", tmp_path / "caches"
    file.write_text(INTERRUPTED)
    base.mkdir()
    with program(file, str(base), "endless", "1") as running:
        wait_for((base / "b.writing").exists)
        (os.killpg if to_group else os.kill)(running.pid, signal.SIGINT)
        output, errors = running.communicate(timeout=120)
        assert (running.returncode, output) == (-signal.SIGINT, "")
        assert errors.count("Traceback") == 1
        assert not alive(int((base / "b.writing").read_text()))
    assert sorted(path.name for path in base.iterdir()) == ["a", "b.writing", "tmp"]
    assert list((base / "tmp").iterdir()) == []


def test_c09_call_succeeds_after_parent_and_children_were_killed(tmp_path: Path) -> None:
    file, killed, whole = tmp_path / "program.py", tmp_path / "killed", tmp_path / "whole"
    file.write_text(INTERRUPTED)
    killed.mkdir()
    with program(file, str(killed), "endless", "3") as running:
        wait_for((killed / "b.writing").exists)
        running.kill()
        wait_for(lambda: not alive(int((killed / "b.writing").read_text())), seconds=10)
    assert not (killed / "b").exists()
    finished = {path.name for path in killed.iterdir()} & {"a", "b", "c"}
    for base, number in ((killed, "2"), (whole, "0")):
        with program(file, str(base), "numbered", number) as running:
            output, errors = running.communicate(timeout=240)
            assert (running.returncode, errors) == (0, "")
            assert output.count("already exists") == (len(finished) if base == killed else 0)
    assert list((killed / "tmp").iterdir()) == []
    for name in "abc":
        relative = {file.relative_to(killed / name): file.read_bytes() for file in (killed / name).rglob("*.*")}
        assert relative == {file.relative_to(whole / name): file.read_bytes() for file in (whole / name).rglob("*.*")}
        assert relative
