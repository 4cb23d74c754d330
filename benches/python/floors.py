"""What the library is measured against: the same work in plain Python, and nothing but copying memory.

The floors read the shards of the very cache that is measured, so page cache and layout are the same for all.
"""

import ctypes
import importlib.machinery
import importlib.util
import mmap
import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from disk import INDEX_ROW

from dataset_rt import CachedSample

ENVELOPE = struct.Struct("<Q")


class PythonFloor:
    """A Python loop over an `mmap` that builds the same sample objects in the same order.

    It reads what a reader has to read: the row of the index, the length of the envelope, the payload. Only the metadata
    lies ready as Python lists, because reading Arrow in plain Python would take longer than all the rest.
    """

    def __init__(self, cache: Path, cache_id: int, metadata: dict[str, list[int | float | str]]) -> None:
        self.cache_id = cache_id
        self.names = list(metadata)
        self.columns = list(metadata.values())
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


class NativeFloor:
    """The same loop in native code that trusts every byte and looks nothing up ahead; and the objects alone, made of nothing."""

    def __init__(self, floor: PythonFloor, cache: Path, payload_bytes: int) -> None:
        self._native = native_floor()
        self._names = floor.names
        self._payload_bytes = payload_bytes
        shards = sorted((cache / "shards").iterdir())
        self.reader = self._native.NaiveReader(
            CachedSample, floor.cache_id, cache / "index.bin", shards, tuple(floor.columns), floor.names
        )

    def objects(self, count: int) -> Iterator[CachedSample]:
        """So many samples that were read from nowhere."""
        samples: Iterator[CachedSample] = self._native.Objects(CachedSample, self._names, self._payload_bytes, count)
        return samples


class CopyFloor:
    """Copies the payloads into memory that is used again and again: the bandwidth of `memcpy`.

    With two buffers in turn it copies as a consumer needs it: the last sample is still in use while the next one is copied.
    """

    def __init__(self, floor: PreparedFloor, largest: int) -> None:
        # The addresses are good as long as the files stay mapped.
        self._floor = floor
        self._targets = [ctypes.create_string_buffer(largest) for _ in range(2)]
        addresses: dict[int, int] = {}
        self._places = []
        for shard, start, stop in floor.places:
            base = addresses.get(id(shard))
            if base is None:
                base = addresses[id(shard)] = ctypes.addressof(ctypes.c_char.from_buffer(shard))
            self._places.append((base + start, stop - start))

    def copy(self, order: Sequence[int], buffers: int = 1) -> None:
        """Copies the payloads of these rows."""
        places, move = self._places, ctypes.memmove
        addresses = [ctypes.addressof(target) for target in self._targets[:buffers]]
        address, other = addresses[0], addresses[-1]
        for row in order:
            source, length = places[row]
            move(address, source, length)
            address, other = other, address


def map_file(path: Path) -> mmap.mmap:
    """Maps a file. Privately, because ctypes tells addresses of writable buffers only."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


def native_floor() -> Any:
    """The extension module in `benches/floor`, built when it is not there yet."""
    root = Path(__file__).parents[2]
    target = root / "target" / "floor"
    command = ["cargo", "build", "--release", "--quiet", "--target-dir", str(target)]
    environment = os.environ | {"PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_PYTHON": sys.executable}
    subprocess.run(command, cwd=root / "benches" / "floor", env=environment, check=True)
    name = "libnative_floor.dylib" if sys.platform == "darwin" else "libnative_floor.so"
    library = str(target / "release" / name)
    loader = importlib.machinery.ExtensionFileLoader("native_floor", library)
    spec = importlib.util.spec_from_file_location("native_floor", library, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
