"""Lance: batches of its scanner in order, `take` with many rows at once where the rows are known."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from compare.candidates import columns
from compare.candidates.candidate import Sample, block_rows, blocks
from compare.candidates.peer import Peer


class Candidate(Peer):
    """One Lance dataset."""

    def write(self, source: Any, directory: Path, *, synced: bool) -> None:
        reader = pa.RecordBatchReader.from_batches(
            columns.SCHEMA, columns.batches(source, 8 * block_rows(self.samples))
        )
        lance.write_dataset(reader, directory / "lance")

    def open(self, directory: Path) -> None:
        self._dataset = lance.dataset(directory / "lance")

    def close(self) -> None:
        del self._dataset

    def in_order(self, start: int, count: int) -> Iterator[Sample]:
        found = self._dataset.to_batches(offset=start, limit=count, batch_size=block_rows(self.samples))
        return (sample for batch in found for sample in columns.samples(batch))

    def shuffled(self, rows: Sequence[int]) -> Iterator[Sample]:
        for block in blocks(rows, block_rows(self.samples)):
            yield from columns.samples(self._dataset.take(block))

    def get_item(self, row: int) -> Sample:
        return next(columns.samples(self._dataset.take([row])))
