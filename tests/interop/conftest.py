"""The published package in an environment of its own, which `make interop` creates."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PYTHON = Path(os.environ.get("DATASET_RT_INTEROP_PYTHON", HERE.parents[1] / "target" / "interop" / "bin" / "python"))


class Peer:
    """Asks the other process, and waits for its answer."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def __call__(self, verb: str, **arguments: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": verb, "with": arguments}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise AssertionError(f"the published package failed to {verb}: {answer['error']}")
        return answer["value"]


@pytest.fixture(scope="session")
def peer() -> Iterator[Peer]:
    # Without the search path of this interpreter, which leads to our package.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    process = subprocess.Popen(
        [str(PYTHON), str(HERE / "peer.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    yield Peer(process)
    process.communicate(timeout=30)
