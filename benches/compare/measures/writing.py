"""Writing. Figures are of one sample, or of the whole set where it says so."""

import os
import shutil
from pathlib import Path

from memory import peak_since_reset, reset_peak, status

from compare.held import Held
from compare.measures.timing import Figures, timed


def write(held: Held, count: int, seed: int, *, synced: bool = False) -> Figures:
    """The first samples of a set once more."""
    held.source.rows = count
    held.scratch.mkdir(parents=True)
    if synced:
        # What others left to be written must not be waited for here.
        os.sync()
    try:
        return timed(lambda: held.candidate.write(held.source, held.scratch, synced=synced), count)
    finally:
        held.source.rows = held.count
        shutil.rmtree(held.scratch)


def peak(held: Held, count: int, seed: int) -> Figures:
    """How far resident memory grows, in bytes, while samples are written that are made on the fly."""
    source = held.source
    held.scratch.mkdir(parents=True)
    reset_peak()
    start = status("VmRSS")
    try:
        held.candidate.write(source, held.scratch, synced=False)
        return {"value": peak_since_reset() - start}
    finally:
        shutil.rmtree(held.scratch)


def beside(held: Held, count: int, seed: int) -> Figures:
    """Bytes in files for each sample, beside its payload."""
    payloads = held.candidate.samples.payloads()
    payload_bytes = sum(len(payloads[row % len(payloads)]) for row in range(held.count))
    return {"value": (files_bytes(held.data) - payload_bytes) / held.count}


def files_bytes(directory: Path) -> int:
    """Of all files below a directory."""
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
