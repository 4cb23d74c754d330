"""The process of a candidate, and the parent's end of the pipe to it: one line of JSON asks, one answers.

python -m compare.child NAME
"""

import faulthandler
import importlib
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from compare.candidates import ENTRIES, Entry

BENCHES = Path(__file__).parents[1]


class FailedError(Exception):
    """What was asked for went wrong in the other process."""


class Child:
    """A candidate in a process of its own, which waits while others are measured."""

    def __init__(self, entry: Entry, python: Path, search: list[Path], log: Path) -> None:
        # Without the search path of this interpreter, which may lead to this library.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment["PYTHONPATH"] = os.pathsep.join(map(str, [BENCHES, BENCHES / "python", *search]))
        environment["HF_HUB_OFFLINE"] = environment["DISABLE_VERSION_CHECK"] = "1"
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [str(python), "-m", "compare.child", entry.name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, env=environment,
        )  # fmt: skip

    def ask(self, what: str, **arguments: Any) -> Any:
        """The answer of a method of `compare.held.Holder`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": what, "with": arguments}, default=str) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise FailedError(f"its process ended with exit status {self._process.wait()}; see {self._log.name}")
        answer = json.loads(line)
        if "error" in answer:
            raise FailedError(answer["error"])
        return answer["value"]

    def end(self) -> None:
        """Lets the process end, and waits for it."""
        self._process.communicate()
        self._log.close()


def main(name: str) -> None:
    """Answers until nothing more is asked."""
    # Whatever libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    faulthandler.enable()
    holder: Any = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if holder is None:
                holder = importlib.import_module("compare.held").Holder(ENTRIES[name])
            answer = {"value": getattr(holder, asked["do"])(**asked["with"])}
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
