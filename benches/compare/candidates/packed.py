"""One sample as one value, for libraries that keep values of bytes: metadata first, so that the payload is the rest."""

import struct

from sets import Row

from compare.candidates.candidate import Sample

HEAD = struct.Struct("<qdB")


def pack(payload: bytes, metadata: Row) -> bytes:
    """A value."""
    split = str(metadata["split"]).encode()
    return HEAD.pack(metadata["label"], metadata["score"], len(split)) + split + payload


def unpack(value: bytes | memoryview) -> Sample:
    """The sample in a value. The payload is copied once."""
    label, score, length = HEAD.unpack_from(value)
    end = HEAD.size + length
    return bytes(value[end:]), label, score, str(value[HEAD.size : end], "ascii")
