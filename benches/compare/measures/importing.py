"""Importing, in an interpreter that does nothing else."""

import subprocess
import sys

from compare.held import Held
from compare.measures.timing import Figures


def import_time(held: Held, count: int, seed: int) -> Figures:
    """Seconds, without the start of the interpreter."""
    code = (
        "import time; started = time.perf_counter()\n"
        f"{held.candidate.import_statement()}\n"
        "print(time.perf_counter() - started)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {"value": float(done.stdout)}
