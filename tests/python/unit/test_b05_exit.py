"""B5: programs that end with live iterators and daemon threads end silently, with exit code 0."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import run_python


@pytest.mark.parametrize("number", range(12))
def test_b05_programs_end_silently_whatever_is_under_way(tmp_path: Path, number: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "exit_program", str(number), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


BUSY_SOURCE = """
import sys, threading
import dataset_rt as drt
from support import QUIET, Listed

class Busy(dict):
    def items(self):
        working.set()
        return super().items() if sum(range(2000)) else None

def rows():
    while True:
        if sys.argv[2] == "iterator":
            working.set()
        yield bytes(sum(range(2000)) % 7), (dict if sys.argv[2] == "iterator" else Busy)(number=1)

working = threading.Event()
call = (Listed("endless", rows()), sys.argv[1])
write = drt.DatasetRuntime(num_workers=1).write_cache
threading.Thread(target=write, args=call, kwargs={"writer_config": QUIET}, daemon=True).start()
working.wait()
"""


@pytest.mark.parametrize("where", ["iterator", "mapping"])
def test_b05_daemon_threads_may_be_in_python_code_of_a_source(tmp_path: Path, where: str) -> None:
    for number in range(3):
        done = run_python(BUSY_SOURCE, str(tmp_path / str(number)), where)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


ENDLESS_CALLBACK = """
import sys, threading, types
import dataset_rt as drt
from support import QUIET, Listed

where, working = sys.argv[2], threading.Event()

def work(self=None):
    working.set()
    while True:
        sum(range(2000))

class Unsaid(Exception):
    __str__ = work

class Unshown:
    __repr__ = work

def failing():
    raise Unsaid
    yield

def failing_later():
    try:
        yield b"", {}
        yield None
    finally:
        work()

class Exporter:
    __buffer__ = lambda self, flags: work()

rows = {"text": failing(), "buffer": iter([(Exporter(), {})]), "key": iter([(b"", {Unshown(): 1})])}.get(where, iter([(b"", {"a": 1})] * 3))
parts = {"name": "a", "fingerprint": None, "__iter__": lambda self: failing_later() if where == "end" else rows} | ({where: property(work)} if where in ("name", "fingerprint") else {})
source = type("Source", (), parts)()
config = QUIET
if where == "write":
    # What a notebook has there.
    sys.stderr = type("Stream", (), {"__module__": "ipykernel.iostream", "write": lambda self, text: work(), "flush": work})()
    config = drt.WriterConfig(show_progress=True)
call = drt.DatasetRuntime(num_workers=1).write_cache
threading.Thread(target=call, args=(source, sys.argv[1]), kwargs={"writer_config": config}, daemon=True).start()
assert working.wait(60)
sys.stderr = sys.__stderr__
"""


@pytest.mark.parametrize("where", ["name", "fingerprint", "text", "key", "buffer", "end", "write"])
def test_b05_daemon_threads_may_be_in_any_other_python_code_of_users(tmp_path: Path, where: str) -> None:
    if where == "buffer" and sys.version_info < (3, 12):
        pytest.skip("classes of Python have no buffers before 3.12")
    done = run_python(ENDLESS_CALLBACK, str(tmp_path / "caches"), where)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


LATE = """
import sys, threading
import dataset_rt as drt
from pathlib import Path
from support import Listed, opened, write

class Late:
    def __del__(self):
        try:
            next(iterator)
        except RuntimeError as error:
            assert "the interpreter is ending" in str(error)

def run():
    while True:
        next(iterator)

runtime = drt.DatasetRuntime(num_workers=1)
rows = [(bytes(200_000), {"number": 0})] * 30
dataset = opened(runtime, write(runtime, Path(sys.argv[1]), Listed("a", rows)), shuffle=True)
dataset.set_epoch_len(2**40)
iterator = iter(dataset)
late = Late()
threading.Thread(target=run, daemon=True).start()
next(iterator)
"""


def test_b05_destructors_do_not_wait_for_threads_that_the_end_has_stopped(tmp_path: Path) -> None:
    for number in range(5):
        done = run_python(LATE, str(tmp_path / str(number)))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
