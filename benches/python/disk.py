"""Reading from the disk as fast as the system lets one: what cold reads are measured against."""

import os
import struct
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

INDEX_ROW = struct.Struct("<QQQ")
THREADS = 8


def evict(folder: Path) -> None:
    """Drop the files from the page cache. Nobody may have them mapped."""
    for file in folder.rglob("*.*"):
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def preads(cache: Path, rows: Sequence[int]) -> None:
    """Reads records with eight threads, one buffer each."""
    index = list(INDEX_ROW.iter_unpack((cache / "index.bin").read_bytes()))
    shards = [os.open(shard, os.O_RDONLY) for shard in sorted((cache / "shards").iterdir())]

    def read(part: Sequence[int]) -> None:
        buffer = bytearray(max(length for _, _, length in index))
        for row in part:
            shard, offset, length = index[row]
            os.preadv(shards[shard], [memoryview(buffer)[:length]], offset)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(read, [rows[number::THREADS] for number in range(THREADS)]))
    for shard in shards:
        os.close(shard)


def dd(cache: Path) -> None:
    """Reads all shards with `dd`, in blocks of 1 MiB."""
    for shard in sorted((cache / "shards").iterdir()):
        subprocess.run(["dd", f"if={shard}", "of=/dev/null", "bs=1M", "status=none"], check=True)
