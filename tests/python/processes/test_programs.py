"""Whole programs that use worker processes: without a main guard, from standard input, in daemonic and forked processes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

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


def run(base: Path, program: str, *, how: str = "file") -> "subprocess.CompletedProcess[str]":
    file = base / "program.py"
    file.write_text(program)
    arguments = {"file": [str(file)], "text": ["-c", program], "input": ["-"]}[how]
    return subprocess.run(
        [sys.executable, *arguments, str(base / "caches")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        input=program if how == "input" else None,
        capture_output=True,
        text=True,
        timeout=60,
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
    program = BODY.replace("def write", "class Mine(Numbered): pass\n\ndef write").replace("Numbered(name", "Mine(name")
    done = run(tmp_path, program + "write()\n", how="text")
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
    program = BODY + (
        "import multiprocessing\n"
        "if __name__ == '__main__':\n"
        f"    with multiprocessing.get_context('{method}').Pool(1) as pool:\n"
        "        pool.apply(write)\n"
    )
    done = run(tmp_path, program)
    assert "RuntimeError: num_processes > 0 is not possible in a daemonic process" in done.stderr
    assert not (tmp_path / "caches").exists()


def test_b04_runtime_inherited_by_a_forked_process_is_refused(tmp_path: Path) -> None:
    program = BODY.replace("def write():\n    runtime = drt", "runtime = drt").replace("    config =", "config =")
    program = program.replace("    for result", "def write():\n    for result") + (
        "import os\n"
        "if __name__ == '__main__':\n"
        "    write()\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        write()\n"
        "    else:\n"
        "        print('child', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)\n"
    )
    done = run(tmp_path, program)
    assert done.stdout.splitlines()[-1] == "child 1"
    assert "RuntimeError" in done.stderr
