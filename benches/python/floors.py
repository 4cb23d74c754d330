"""What the library is measured against: the same work in plain Python, and nothing but copying memory.

The floors read the shards of the very cache that is measured, so page cache and layout are the same for all.
"""

import ctypes
import mmap
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from dataset_rt import CachedSample, CacheInput

ENVELOPE = struct.Struct("<Q")
INDEX_ROW = struct.Struct("<QQQ")


class PythonFloor:
    """A Python loop over an `mmap` of the shards that builds the same sample objects in the same order.

    Everything that can be known beforehand is: where payloads start, and the metadata as Python lists.
    """

    def __init__(self, cache: Path, cache_id: int, metadata: Sequence[dict[str, int | float | str]]) -> None:
        self._cache_id = cache_id
        self._names = list(metadata[0])
        self._columns = [[row[name] for row in metadata] for name in self._names]
        maps = [map_file(shard) for shard in sorted((cache / "shards").iterdir())]
        self.places = [
            payload_place(maps[shard], offset, length)
            for shard, offset, length in INDEX_ROW.iter_unpack((cache / "index.bin").read_bytes())
        ]

    def samples(self, order: Sequence[int]) -> Iterator[CachedSample]:
        """Samples in the given order."""
        places, cache_id = self.places, self._cache_id
        (first_name, second_name, third_name), (first, second, third) = self._names, self._columns
        for row in order:
            shard, start, stop = places[row]
            metadata = {first_name: first[row], second_name: second[row], third_name: third[row]}
            yield CachedSample(shard[start:stop], metadata, cache_id, row)

    def get_item(self, cache_id: int, row: int) -> CachedSample:
        """One sample."""
        shard, start, stop = self.places[row]
        metadata = {name: column[row] for name, column in zip(self._names, self._columns, strict=True)}
        return CachedSample(shard[start:stop], metadata, cache_id, row)


class CopyFloor:
    """Copies the payloads into one buffer that is used again and again: the bandwidth of `memcpy`."""

    def __init__(self, floor: PythonFloor, largest: int) -> None:
        self._target = ctypes.create_string_buffer(largest)
        self._address = ctypes.addressof(self._target)
        addresses: dict[int, int] = {}
        self._places = []
        for shard, start, stop in floor.places:
            base = addresses.get(id(shard))
            if base is None:
                base = addresses[id(shard)] = ctypes.addressof(ctypes.c_char.from_buffer(shard))
            self._places.append((base + start, stop - start))

    def copy(self, order: Sequence[int]) -> None:
        """Copies the payloads of these rows."""
        places, address, move = self._places, self._address, ctypes.memmove
        for row in order:
            source, length = places[row]
            move(address, source, length)


class PlainWriter:
    """Appends payloads to one file and collects the metadata in lists, in one thread, without syncing anything."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, source: Iterator[CacheInput]) -> None:
        """Writes all samples of the source."""
        columns: dict[str, list[int | float | str]] = {}
        lengths = []
        with self._path.open("wb") as file:
            for data, metadata in source:
                file.write(data)
                lengths.append(len(data))
                for name, value in metadata.items():
                    columns.setdefault(name, []).append(value)


def map_file(path: Path) -> mmap.mmap:
    """Maps a file. Privately, because ctypes tells addresses of writable buffers only."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


def payload_place(shard: mmap.mmap, offset: int, length: int) -> tuple[mmap.mmap, int, int]:
    """Shard, start and end of a payload that is stored verbatim."""
    (json_bytes,) = ENVELOPE.unpack_from(shard, offset)
    return shard, offset + ENVELOPE.size + json_bytes, offset + length
