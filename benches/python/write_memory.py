"""Prints how far the memory of a process grows while it writes: many tiny samples, then a few huge ones.

    python benches/python/write_memory.py [--rows N] [--huge N] [--workers N] [--directory DIR]

The peak is that of resident memory (`VmHWM`, reset before the write); caches go to disk and are not part of it. The caches
of both cases take 1.5 GB and 10 GB of disk with the defaults, one after the other.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from memory import peak_since_reset, reset_peak, status

import dataset_rt as drt

MIB = 1 << 20
TINY_BYTES = 16
HUGE_BYTES = 200 * MIB

#: How much the peak may be above the start, in bytes, for this number of workers.
LIMITS = {
    "tiny": lambda _workers: 64 * MIB,
    "huge": lambda workers: 2 * workers * HUGE_BYTES + 200 * MIB,
}


class Tiny:
    """Samples made on the fly, with a column of each kind."""

    name = "tiny"

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[drt.CacheInput]:
        for row in range(self.count):
            metadata = {"row": row, "third": row / 3, "odd": row % 2 == 1, "group": f"group {row % 1000}"}
            yield drt.CacheInput(row.to_bytes(TINY_BYTES, "little"), metadata)


class Huge:
    """Samples that are each a fresh object, which nobody else keeps."""

    name = "huge"

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[drt.CacheInput]:
        for row in range(self.count):
            yield drt.CacheInput(bytes([row % 256]) * HUGE_BYTES, {"row": row})


def measure(case: str, count: int, workers: int, directory: Path) -> None:
    """Writes one cache in this process and prints its line of the table."""
    source = {"tiny": Tiny, "huge": Huge}[case](count)
    config = drt.WriterConfig(show_progress=False, prefetch_size=64)
    with drt.DatasetRuntime(num_workers=workers) as runtime:
        reset_peak()
        start = status("VmRSS")
        started = time.perf_counter()
        (result,) = runtime.write_cache(source, directory, writer_config=config)
        seconds = time.perf_counter() - started
        grown = peak_since_reset() - start
    if isinstance(result, drt.CacheWriteError):
        raise SystemExit(result.message)
    size = TINY_BYTES if case == "tiny" else HUGE_BYTES
    limit = LIMITS[case](workers)
    verdict = "within" if grown <= limit else "ABOVE"
    print(
        f"| {count:,} x {size:,} B | {workers} | {seconds:,.1f} s | {start / MIB:,.0f} MiB | +{grown / MIB:,.0f} MiB "
        f"| {limit / MIB:,.0f} MiB, {verdict} |",
        flush=True,
    )


def main() -> None:
    """Runs each case in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="tiny samples (default: 10,000,000)")
    parser.add_argument("--huge", type=int, default=50, help="samples of 200 MiB (default: 50)")
    parser.add_argument("--workers", type=int, default=2, help="native threads (default: 2)")
    parser.add_argument("--directory", type=Path, help="where to put the caches (default: the temporary directory)")
    parser.add_argument("--case", choices=list(LIMITS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    counts = {"tiny": arguments.rows, "huge": arguments.huge}
    if arguments.case:
        measure(arguments.case, counts[arguments.case], arguments.workers, arguments.directory)
        return
    print("| samples | workers | time | at the start | peak above it | limit |\n|---|---|---|---|---|---|", flush=True)
    for case in LIMITS:
        directory = Path(tempfile.mkdtemp(prefix="dataset-rt-bench-", dir=arguments.directory))
        try:
            again = [sys.executable, __file__, *sys.argv[1:], "--case", case, "--directory", str(directory)]
            subprocess.run(again, check=True)
        finally:
            shutil.rmtree(directory)


if __name__ == "__main__":
    main()
