"""Read a cache with nothing but Arrow, in 60 lines for other languages to follow: `python read_cache.py CACHE`."""

import json
import struct
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from pyarrow.ipc import open_file


def check(holds: bool, otherwise: str) -> None:
    """Refuse what cannot be."""
    if not holds:
        raise ValueError(otherwise)


def expand(stored: bytes) -> bytes:
    """Undo LZ4: runs of literal bytes, each followed by a stretch to repeat from what is there already."""
    source, out = iter(stored[4:]), bytearray()

    def length(nibble: int) -> int:
        more = 255 if nibble == 15 else 0
        while more == 255:
            nibble += (more := next(source))
        return nibble

    for token in source:
        out += bytes([next(source) for _ in range(length(token >> 4))])
        if (low := next(source, None)) is not None:  # The last run has nothing to repeat.
            distance = low | next(source) << 8
            for _ in range(length(token & 15) + 4):
                out.append(out[-distance])
    check(stored[:4] == struct.pack("<I", len(out)), "a payload has another length than is stated")
    return bytes(out)


def read_cache(cache: Path) -> Iterator[tuple[dict[str, object], bytes]]:
    """Yield metadata and payload of each sample, in order."""
    manifest = json.loads((cache / "manifest.json").read_bytes())
    check(manifest["format_version"] in (2, 3), f"cannot read format version {manifest['format_version']}")
    digests = {"metadata.arrow": manifest["metadata_sha256"], "index.bin": manifest["index_sha256"]}
    for shard in manifest["shards"]:
        check(shard["name"] not in ("", ".", "..") and not set(shard["name"]) & set("/\\\0"), "a name leads elsewhere")
        digests[f"shards/{shard['name']}"] = shard["sha256"]
    content = {name: (cache / name).read_bytes() for name in digests}
    for name, digest in digests.items():
        check(sha256(content[name]).hexdigest() == digest, f"{name} is damaged")
    table = open_file(content["metadata.arrow"]).read_all().to_pylist()
    for (number, offset, length), metadata in zip(struct.iter_unpack("<QQQ", content["index.bin"]), table, strict=True):
        shard = manifest["shards"][number]
        record = content[f"shards/{shard['name']}"][offset : offset + length]
        start, algo = 8 + struct.unpack_from("<Q", record)[0], shard["compression"]["algo"]
        check(start <= length == len(record) and algo in ("none", "lz4"), "a record is short or compressed otherwise")
        yield metadata, expand(record[start:]) if algo == "lz4" else record[start:]


if __name__ == "__main__":
    print(*((metadata, len(payload)) for metadata, payload in read_cache(Path(sys.argv[1]))), sep="\n")
