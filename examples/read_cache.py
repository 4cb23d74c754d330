"""Reads a cache without dataset_rt: the storage format in 60 lines, as a pattern for readers in other languages.

python examples/read_cache.py CACHE    prints metadata and payload length of every sample
"""

import json
import struct
import sys
from collections.abc import Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path

import pyarrow.ipc


def expand(block: bytes) -> bytes:
    """Undo LZ4: runs of literal bytes, each followed by a stretch to repeat from what is there already."""
    source, out = iter(block), bytearray()

    def length(nibble: int) -> int:
        more = 255 if nibble == 15 else 0
        while more == 255:
            more = next(source)
            nibble += more
        return nibble

    for token in source:
        out += bytes(islice(source, length(token >> 4)))
        if (low := next(source, None)) is None:  # The last run has nothing to repeat.
            break
        distance = low | next(source) << 8
        for _ in range(length(token & 15) + 4):
            out.append(out[-distance])
    return bytes(out)


def read_cache(cache: Path) -> Iterator[tuple[dict[str, object], bytes]]:
    """Yield metadata and payload of each sample, in order."""
    manifest = json.loads((cache / "manifest.json").read_bytes())
    if manifest["format_version"] not in (2, 3):
        raise ValueError(f"cannot read format version {manifest['format_version']}")
    table = pyarrow.ipc.open_file(cache / "metadata.arrow").read_all()
    shards = [(cache / "shards" / shard["name"]).read_bytes() for shard in manifest["shards"]]
    for shard, content in zip(manifest["shards"], shards, strict=True):
        if sha256(content).hexdigest() != shard["sha256"]:
            raise ValueError(f"{shard['name']} is damaged")
    for row, (shard, offset, length) in enumerate(struct.iter_unpack("<QQQ", (cache / "index.bin").read_bytes())):
        record = shards[shard][offset : offset + length]
        payload = record[8 + struct.unpack_from("<Q", record)[0] :]
        if manifest["shards"][shard]["compression"]["algo"] == "lz4":
            stated, payload = payload[:4], expand(payload[4:])
            if stated != struct.pack("<I", len(payload)):
                raise ValueError(f"sample {row} is damaged")
        yield {field["name"]: table[field["name"]][row].as_py() for field in manifest["metadata_schema"]}, payload


if __name__ == "__main__":
    for metadata, payload in read_cache(Path(sys.argv[1])):
        print(metadata, len(payload))
