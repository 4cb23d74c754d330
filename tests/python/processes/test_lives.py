"""Worker processes end when their parent does, however that happens."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("lives.py")


@contextmanager
def start(base: Path, how: str, what: str) -> Iterator["subprocess.Popen[str]"]:
    path = os.pathsep.join([str(PROGRAM.parents[1]), *sys.path])
    program = subprocess.Popen(
        [sys.executable, str(PROGRAM), how, str(base), what],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield program
    finally:
        # Whatever a failed test leaves behind.
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.communicate()


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(base: Path) -> list[int]:
    flags = [base / f"flag{number}" for number in range(2)]
    wait_for(lambda: all(flag.exists() for flag in flags))
    return [int(flag.read_text()) for flag in flags]


@pytest.mark.parametrize(
    "what",
    ["announce_and_hang", "announce_and_hang_elsewhere", "announce_and_ignore", "announce_and_keep_the_interpreter"],
)
def test_c09_children_end_when_their_parent_is_killed(tmp_path: Path, what: str) -> None:
    with start(tmp_path, "plain", what) as program:
        pids = children(tmp_path)
        assert all(alive(pid) for pid in pids)
        program.kill()
        wait_for(lambda: not any(alive(pid) for pid in pids), seconds=10)


def test_c09_children_end_although_a_forked_process_keeps_the_channels(tmp_path: Path) -> None:
    with start(tmp_path, "forked", "announce_and_hang_elsewhere") as program:
        pids = children(tmp_path)
        wait_for((tmp_path / "forked").exists)
        try:
            program.kill()
            wait_for(lambda: not any(alive(pid) for pid in pids), seconds=10)
        finally:
            os.kill(int((tmp_path / "forked").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("to_group", [True, False])
def test_c11_ctrl_c_ends_the_children_in_order(tmp_path: Path, to_group: bool) -> None:
    with start(tmp_path, "plain", "announce_and_hang") as program:
        pids = children(tmp_path)
        # A terminal sends it to every process of the program.
        (os.killpg if to_group else os.kill)(program.pid, signal.SIGINT)
        _, errors = program.communicate(timeout=30)
        assert program.returncode == -signal.SIGINT
        assert errors.count("Traceback") == 1
        assert errors.rstrip().endswith("KeyboardInterrupt")
        assert not any(alive(pid) for pid in pids)
        assert all((tmp_path / f"flag{number}.interrupted").exists() for number in range(2))


def test_c11_ctrl_c_does_not_touch_children_that_start(tmp_path: Path) -> None:
    with start(tmp_path, "slow", "touch") as program:
        wait_for(lambda: len(list(tmp_path.glob("importing*[0-9]"))) == 2)
        for flag in tmp_path.glob("importing*[0-9]"):
            os.kill(int(flag.read_text()), signal.SIGINT)
        (tmp_path / "go").touch()
        _, errors = program.communicate(timeout=30)
        assert (program.returncode, errors) == (0, "")
        assert all((tmp_path / f"s{number}").exists() for number in range(2))


@pytest.mark.parametrize("what", ["announce_and_hang", "announce_and_ignore"])
def test_b05_interpreter_ends_around_a_daemon_thread_that_writes(tmp_path: Path, what: str) -> None:
    with start(tmp_path, "daemon", what) as program:
        _, errors = program.communicate(timeout=60)
        assert (program.returncode, errors) == (0, "")
        pids = children(tmp_path)
        assert not any(alive(pid) for pid in pids)
