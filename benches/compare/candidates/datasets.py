"""Hugging Face datasets: an Arrow file that is mapped, read in batches in its Arrow format."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset
from datasets.arrow_writer import ArrowWriter

from compare.candidates import columns
from compare.candidates.candidate import Sample, block_rows, blocks
from compare.candidates.peer import Peer


class Candidate(Peer):
    """One Arrow file."""

    def write(self, source: Any, directory: Path, *, synced: bool) -> None:
        with ArrowWriter(path=str(directory / "data.arrow"), schema=columns.SCHEMA) as writer:
            for batch in columns.batches(source, block_rows(self.samples)):
                writer.write_table(pa.Table.from_batches([batch]))
            writer.finalize()

    def open(self, directory: Path) -> None:
        self._rows = Dataset.from_file(str(directory / "data.arrow"))
        self._tables = self._rows.with_format("arrow")

    def close(self) -> None:
        del self._rows, self._tables

    def in_order(self, start: int, count: int) -> Iterator[Sample]:
        size = block_rows(self.samples)
        for begin in range(start, start + count, size):
            yield from columns.samples(self._tables[begin : min(begin + size, start + count)])

    def shuffled(self, rows: Sequence[int]) -> Iterator[Sample]:
        for block in blocks(rows, block_rows(self.samples)):
            yield from columns.samples(self._tables[list(block)])

    def get_item(self, row: int) -> Sample:
        return next(columns.samples(self._tables[row : row + 1]))
