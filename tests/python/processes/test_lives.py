"""Worker processes end when their parent does, however that happens."""

import os
import signal
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from processes.watching import alive, program, wait_for

if TYPE_CHECKING:
    import subprocess

PROGRAM = Path(__file__).with_name("lives.py")


def start(base: Path, how: str, what: str) -> AbstractContextManager["subprocess.Popen[str]"]:
    return program(PROGRAM, how, str(base), what)


def children(base: Path) -> list[int]:
    flags = [base / f"flag{number}" for number in range(2)]
    wait_for(lambda: all(flag.exists() for flag in flags))
    return [int(flag.read_text()) for flag in flags]


@pytest.mark.parametrize(
    "what",
    ["announce_and_hang", "announce_and_hang_elsewhere", "announce_and_ignore", "announce_and_keep_the_interpreter"],
)
def test_c09_children_end_when_their_parent_is_killed(tmp_path: Path, what: str) -> None:
    with start(tmp_path, "plain", what) as running:
        pids = children(tmp_path)
        assert all(alive(pid) for pid in pids)
        running.kill()
        wait_for(lambda: not any(alive(pid) for pid in pids), seconds=10)


def test_c09_children_end_although_a_forked_process_keeps_the_channels(tmp_path: Path) -> None:
    with start(tmp_path, "forked", "announce_and_hang_elsewhere") as running:
        pids = children(tmp_path)
        wait_for((tmp_path / "forked").exists)
        try:
            running.kill()
            wait_for(lambda: not any(alive(pid) for pid in pids), seconds=10)
        finally:
            os.kill(int((tmp_path / "forked").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("to_group", [True, False])
def test_c11_ctrl_c_ends_the_children_in_order(tmp_path: Path, to_group: bool) -> None:
    with start(tmp_path, "plain", "announce_and_hang") as running:
        pids = children(tmp_path)
        # A terminal sends it to every process of the program.
        (os.killpg if to_group else os.kill)(running.pid, signal.SIGINT)
        _, errors = running.communicate(timeout=120)
        assert running.returncode == -signal.SIGINT
        assert errors.count("Traceback") == 1
        assert errors.rstrip().endswith("KeyboardInterrupt")
        assert not any(alive(pid) for pid in pids)
        assert all((tmp_path / f"flag{number}.interrupted").exists() for number in range(2))


def test_c11_ctrl_c_does_not_touch_children_that_start(tmp_path: Path) -> None:
    with start(tmp_path, "slow", "touch") as running:
        wait_for(lambda: len(list(tmp_path.glob("importing*[0-9]"))) == 2)
        for flag in tmp_path.glob("importing*[0-9]"):
            os.kill(int(flag.read_text()), signal.SIGINT)
        (tmp_path / "go").touch()
        _, errors = running.communicate(timeout=120)
        assert (running.returncode, errors) == (0, "")
        assert all((tmp_path / f"s{number}").exists() for number in range(2))


@pytest.mark.parametrize("what", ["announce_and_hang", "announce_and_ignore"])
def test_b05_interpreter_ends_around_a_daemon_thread_that_writes(tmp_path: Path, what: str) -> None:
    with start(tmp_path, "daemon", what) as running:
        _, errors = running.communicate(timeout=240)
        assert (running.returncode, errors) == (0, "")
        pids = children(tmp_path)
        assert not any(alive(pid) for pid in pids)
