"""C12: progress is for people: on a terminal and in notebooks, and nowhere else."""

import fcntl
import itertools
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from support import run_python

PROGRAM = """
import sys, time
import dataset_rt as drt
from support import Listed
from processes.sources import Numbered

def slowly(rows):
    # Longer than the time between two drawings.
    time.sleep(0.15)
    yield from rows

class Slow(Listed):
    def __iter__(self):
        return slowly(self.rows)

ROWS = [(bytes(10_000), {"row": row}) for row in range(300)]

def main(what, base):
    config = drt.WriterConfig(num_processes=2 if what == "processes" else 0, show_progress=what != "unwanted")
    names = ["one"] if what in ("one", "fails") else ["one", "two", "three"]
    sources = [Numbered(name, 3) if what == "processes" else Slow(name, ROWS) for name in names]
    if what == "fails":
        sources[0].rows = [*ROWS, (b"", {"row": "text"})]
    with drt.DatasetRuntime(num_workers=2) as runtime:
        first = config.model_copy(update={"show_progress": False}) if what == "reused" else config
        runtime.write_cache(sources, base, writer_config=first)
        if what == "reused":
            runtime.from_cache_sources(sources, base, reader_config=drt.ReaderConfig(seed=1), writer_config=config)

if __name__ == "__main__":
    main(*sys.argv[1:3])
"""

NOTEBOOK = (
    """
import types
class OutStream:
    def __init__(self):
        self.text = ""
    def write(self, text):
        self.text += text
    def flush(self):
        pass
    def isatty(self):
        return False
OutStream.__module__ = "ipykernel.iostream"
"""
    + PROGRAM
    + """
    import json
    stream, before = OutStream(), sys.stderr
    sys.stderr = stream
    main("several", sys.argv[2] + "/in a notebook")
    sys.stderr = before
    print(json.dumps(stream.text))
"""
)


def on_terminal(tmp_path: Path, what: str) -> str:
    """What the program draws on a terminal of 100 columns."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, str(file), what, str(tmp_path / "caches")],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    drawn = b""
    try:
        while piece := os.read(ours, 4096):
            drawn += piece
    except OSError:
        # How a terminal says that nobody has it open any more.
        pass
    finally:
        os.close(ours)
        output, _ = process.communicate(timeout=240)
    assert (process.returncode, output) == (0, b"")
    return drawn.decode()


def lines(drawn: str) -> list[str]:
    """What was to be seen, one drawing after the other, without escape sequences."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\r", drawn)
    return [line.strip() for line in re.split(r"[\r\n]+", plain) if line.strip()]


RATES = r"\d+ samples, \d+ samples/s, \d+\.\d MB/s"


@pytest.mark.parametrize("what", ["one", "fails"])
def test_c12_terminal_shows_rates_and_ends_with_a_newline(tmp_path: Path, what: str) -> None:
    drawn = on_terminal(tmp_path, what)
    assert drawn.endswith("\n")
    seen = lines(drawn)
    assert all(re.fullmatch(f"one: {RATES}", line) for line in seen)
    if what == "one":
        assert seen[-1].startswith("one: 300 samples, ")


def test_c12_terminal_counts_sources_and_estimates_the_rest(tmp_path: Path) -> None:
    drawn = on_terminal(tmp_path, "several")
    assert drawn.endswith("\n")
    seen = lines(drawn)
    assert all(re.fullmatch(rf"\[[0-3]/3\] (one|two|three): {RATES}(, ETA \d+:\d\d:\d\d)?", line) for line in seen)
    assert any(line.startswith("[1/3] ") and ", ETA " in line for line in seen)
    assert seen[-1].startswith("[3/3] ")


def test_c12_terminal_counts_sources_of_processes(tmp_path: Path) -> None:
    drawn = on_terminal(tmp_path, "processes")
    assert drawn.endswith("\n")
    assert lines(drawn)[0] == "[0/3] sources"
    assert lines(drawn)[-1] == "[3/3] sources"


def test_c12_nothing_is_drawn_for_caches_that_are_there(tmp_path: Path) -> None:
    assert on_terminal(tmp_path, "reused") == ""


def test_c12_nothing_is_drawn_when_nobody_wants_it(tmp_path: Path) -> None:
    assert on_terminal(tmp_path, "unwanted") == ""


@pytest.mark.parametrize("what", ["one", "several"])
def test_c12_nothing_is_drawn_where_nobody_looks(tmp_path: Path, what: str) -> None:
    done = run_python(PROGRAM, what, str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_c12_notebook_gets_a_plain_line_that_is_written_over(tmp_path: Path) -> None:
    done = run_python(NOTEBOOK, "several", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    text = json.loads(done.stdout)
    assert "\x1b" not in text
    assert text.startswith("\r")
    assert text.endswith("\n")
    assert text.count("\n") == 1
    drawings = text.rstrip("\n").split("\r")[1:]
    # Each drawing covers the one before it.
    assert all(len(after) >= len(before.rstrip()) for before, after in itertools.pairwise(drawings))
    assert drawings[-1].startswith("[3/3] ")
    assert any(", ETA " in drawing for drawing in drawings)
