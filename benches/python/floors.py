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
    """A Python loop over an `mmap` that builds the same sample objects in the same order.

    It reads what a reader has to read: the row of the index, the length of the envelope, the payload. Only the metadata
    lies ready as Python lists, because reading Arrow in plain Python would take longer than all the rest.
    """

    def __init__(self, cache: Path, cache_id: int, metadata: Sequence[dict[str, int | float | str]]) -> None:
        self.cache_id = cache_id
        self.names = list(metadata[0])
        self.columns = [[row[name] for row in metadata] for name in self.names]
        self.shards = [map_file(shard) for shard in sorted((cache / "shards").iterdir())]
        self.index = map_file(cache / "index.bin")

    def samples(self, order: Sequence[int]) -> Iterator[CachedSample]:
        """Samples in the given order."""
        index, shards, cache_id = self.index, self.shards, self.cache_id
        (first_name, second_name, third_name), (first, second, third) = self.names, self.columns
        index_row, envelope, row_bytes, envelope_bytes = (
            INDEX_ROW.unpack_from,
            ENVELOPE.unpack_from,
            INDEX_ROW.size,
            ENVELOPE.size,
        )
        for row in order:
            number, offset, length = index_row(index, row * row_bytes)
            shard = shards[number]
            (json_bytes,) = envelope(shard, offset)
            payload = shard[offset + envelope_bytes + json_bytes : offset + length]
            metadata = {first_name: first[row], second_name: second[row], third_name: third[row]}
            yield CachedSample(payload, metadata, cache_id, row)

    def get_item(self, cache_id: int, row: int) -> CachedSample:
        """One sample."""
        number, offset, length = INDEX_ROW.unpack_from(self.index, row * INDEX_ROW.size)
        shard = self.shards[number]
        (json_bytes,) = ENVELOPE.unpack_from(shard, offset)
        metadata = {name: column[row] for name, column in zip(self.names, self.columns, strict=True)}
        return CachedSample(shard[offset + ENVELOPE.size + json_bytes : offset + length], metadata, cache_id, row)


class PreparedFloor:
    """The same loop with everything known beforehand: a tuple for each sample says where its payload is.

    Nobody could keep that for a large data set, but nothing written in Python is faster.
    """

    def __init__(self, floor: PythonFloor) -> None:
        self._floor = floor
        self.places = []
        for number, offset, length in INDEX_ROW.iter_unpack(floor.index[:]):
            shard = floor.shards[number]
            (json_bytes,) = ENVELOPE.unpack_from(shard, offset)
            self.places.append((shard, offset + ENVELOPE.size + json_bytes, offset + length))

    def samples(self, order: Sequence[int]) -> Iterator[CachedSample]:
        """Samples in the given order."""
        places, cache_id = self.places, self._floor.cache_id
        (first_name, second_name, third_name), (first, second, third) = self._floor.names, self._floor.columns
        for row in order:
            shard, start, stop = places[row]
            metadata = {first_name: first[row], second_name: second[row], third_name: third[row]}
            yield CachedSample(shard[start:stop], metadata, cache_id, row)


class CopyFloor:
    """Copies the payloads into one buffer that is used again and again: the bandwidth of `memcpy`."""

    def __init__(self, floor: PreparedFloor, largest: int) -> None:
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
