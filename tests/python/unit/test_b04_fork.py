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
