"""How fast samples come from disk: `python benches/python/cold_path.py [--folder FOLDER] [--gib GIB]`.

Beside the library: eight threads that `pread` the same records, and `dd` with blocks of 1 MiB. All of them read the same
shard file in the same run, in turns, after it was evicted from the page cache. Takes turns because disks of virtual machines are
as fast as their neighbours let them; the median of the ratios of one turn counts.
"""

import argparse
import os
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from disk import dd, evict, preads

import dataset_rt as drt

TURNS = 5
THREADS = 2


class Written:
    """Samples of one size that no compression of a disk makes smaller."""

    def __init__(self, size: int, count: int) -> None:
        self.name = f"cold-{size}"
        self._size, self._count = size, count

    def __iter__(self) -> Iterator[drt.CacheInput]:
        block = os.urandom(self._size + 4096)
        for row in range(self._count):
            start = row % 4096
            yield drt.CacheInput(block[start : start + self._size], {"row": row})


def measure(cache: Path, read: Callable[[], object]) -> float:
    """Seconds to read from disk."""
    evict(cache)
    started = time.perf_counter()
    read()
    return time.perf_counter() - started


def library(cache: Path, shuffle: bool, samples: int) -> Callable[[], object]:
    """Reads a window with the library, opened anew."""

    def read() -> None:
        with drt.DatasetRuntime(num_workers=THREADS) as runtime:
            config = drt.ReaderConfig(seed=random.getrandbits(32), shuffle=shuffle)
            with runtime.cached_dataset([cache], reader_config=config) as dataset:
                dataset.set_epoch_len(samples)
                before = resource.getrusage(resource.RUSAGE_THREAD).ru_majflt
                for _ in dataset:
                    pass
                faults.append(resource.getrusage(resource.RUSAGE_THREAD).ru_majflt - before)

    return read


faults: list[int] = []


def report(
    name: str, size: int, samples: int, ours: Callable[[], object], theirs: Callable[[], object], cache: Path
) -> None:
    """Takes turns and prints rates and their ratio."""
    turns = [(measure(cache, ours), measure(cache, theirs)) for _ in range(TURNS)]
    mine, other = (statistics.median(times) for times in zip(*turns, strict=True))
    ratio = statistics.median(other / mine for mine, other in turns)
    mib = samples * size / 2**20
    print(
        f"{name:28} {mib / mine:8.0f} MiB/s {mine / samples * 1e6:9.1f} us a sample   {mib / other:8.0f} MiB/s"
        f"   ratio {ratio:.2f}   waits of the consumer {faults[-TURNS:]}"
    )


def main() -> None:
    """Writes the caches and measures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--gib", type=float, default=1.0)
    arguments = parser.parse_args()
    total = int(arguments.gib * 2**30)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for size, read in ((100 << 10, 2500), (1 << 10, 20_000)):
            count = total // size
            config = drt.WriterConfig(show_progress=False)
            with drt.DatasetRuntime(num_workers=THREADS) as runtime:
                [result] = runtime.write_cache(Written(size, count), folder, writer_config=config)
            assert isinstance(result, drt.CacheWriteSuccess)
            cache, samples = result.path, min(read, count)
            rows = random.Random(1).choices(range(count), k=samples)
            print(
                f"{size >> 10} KiB, {count} samples in {total >> 20} MiB: the library, and what it is measured against"
            )
            shuffled = library(cache, True, samples)
            report("shuffled, 8 preads", size, samples, shuffled, lambda c=cache, r=rows: preads(c, r), cache)
            ordered = library(cache, False, count)
            report("ordered, dd", size, count, ordered, lambda c=cache: dd(c), cache)


if __name__ == "__main__":
    main()
