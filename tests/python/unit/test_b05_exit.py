"""B5: programs that end with live iterators and daemon threads end silently, with exit code 0."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", range(12))
def test_b05_programs_end_silently_whatever_is_under_way(tmp_path: Path, number: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "exit_program", str(number), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
