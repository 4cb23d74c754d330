"""The floor of writing: a plain Python writer, which compresses text with LZ4 in its one thread."""

from pathlib import Path
from typing import Any

import lz4.block
from plain import PlainWriter

from compare.candidates.peer import Pair, Peer


class Candidate(Peer):
    """One file of payloads; the metadata stays in lists."""

    def write(self, source: Any, directory: Path, *, synced: bool) -> None:
        if self.samples.content == "text":
            source = (Pair(lz4.block.compress(payload), metadata) for payload, metadata in source)
        PlainWriter(directory / "payloads.bin", synced=synced).write(source)
