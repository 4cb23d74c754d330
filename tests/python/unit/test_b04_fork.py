"""B4: children of every kind, started while threads are busy, neither hang nor disturb their parent."""

import copy
import itertools
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from support import numbered, opened, write

import dataset_rt as drt

# Where nothing is inherited nothing can be used: see the test of pickling.
CASES = [
    *itertools.product(("fork", "os-fork", "c-fork"), ("use", "new", "exit")),
    *itertools.product(("spawn", "forkserver"), ("new", "exit")),
]


@pytest.mark.parametrize(("method", "action"), CASES)
def test_b04_children_never_hang(tmp_path: Path, method: str, action: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "fork_program", method, action, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_b04_nothing_native_can_be_sent_to_another_process(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    dataset = opened(runtime, write(runtime, tmp_path, numbered("a", 3)))
    for native, advice in ((runtime, "create another one"), (dataset, "open its cache_paths"), (iter(dataset), "")):
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=rf"cannot (be )?pickled?.*{advice}"):
                attempt(native)


SOURCE_THAT_FORKS = """
import os
import signal
import sys

import dataset_rt as drt

PARENT = os.getpid()


class Source:
    name = "forks"

    def __iter__(self):
        yield from self.rows()
        child = os.fork()
        if child == 0:
            # A child that hangs is ended by its alarm.
            signal.alarm(30)
            if sys.argv[2] == "exit":
                sys.exit(7)
            if sys.argv[2] == "raise":
                raise ValueError("in the child")
            if sys.argv[2] == "end":
                return
        else:
            print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        yield from self.rows()

    def rows(self):
        return ((bytes(2000), {"row": row}) for row in range(1000))


profiler = drt.WriterProfilerConfig(enabled=True, path="profile.json")
runtime = drt.DatasetRuntime(num_workers=2)
try:
    [result] = runtime.write_cache(Source(), sys.argv[1], writer_config=drt.WriterConfig(profiler=profiler))
except RuntimeError as error:
    sys.exit(8 if os.getpid() != PARENT and "create a new DatasetRuntime" in str(error) else str(error))
print(type(result).__name__, len(runtime.cached_dataset([result.path], reader_config=drt.ReaderConfig(seed=1))))
"""


@pytest.mark.parametrize(("action", "status"), [("go on", 8), ("end", 8), ("raise", 8), ("exit", 7)])
def test_b04_a_child_that_a_source_forks_leaves_the_write(tmp_path: Path, action: str, status: int) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SOURCE_THAT_FORKS, str(tmp_path / "base"), action],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    told = f"child {status}\nCacheWriteSuccess 2000\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, told, "")
    assert list((tmp_path / "base" / "tmp").iterdir()) == []
