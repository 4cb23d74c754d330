"""array-record: groups of one record, which its documentation advises for random access, not compressed; many rows are read at once."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter

from compare.candidates.candidate import Sample, block_rows, blocks
from compare.candidates.packed import pack, unpack
from compare.candidates.peer import Peer


class Candidate(Peer):
    """One file."""

    def write(self, source: Any, directory: Path, *, synced: bool) -> None:
        writer = ArrayRecordWriter(str(directory / "data"), "group_size:1,uncompressed")
        for payload, metadata in source:
            writer.write(pack(payload, metadata))
        writer.close()

    def open(self, directory: Path) -> None:
        self._ordered = ArrayRecordReader(str(directory / "data"))
        self._random = ArrayRecordReader(str(directory / "data"), "readahead_buffer_size:0,max_parallelism:0")
        self._get = self._random.read

    def close(self) -> None:
        self._ordered.close()
        self._random.close()

    def in_order(self, start: int, count: int) -> Iterator[Sample]:
        size = block_rows(self.samples)
        for begin in range(start, start + count, size):
            yield from map(unpack, self._ordered.read(begin, min(begin + size, start + count)))

    def shuffled(self, rows: Sequence[int]) -> Iterator[Sample]:
        for block in blocks(rows, block_rows(self.samples)):
            yield from map(unpack, self._random.read(block))

    def get_item(self, row: int) -> Sample:
        return unpack(self._get([row])[0])
