"""LitData: chunks of 64 MB in one local directory, one value of bytes for each sample. It shuffles within its chunks."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from litdata import StreamingDataLoader, StreamingDataset
from litdata.streaming import Cache

from compare.candidates.candidate import BATCH, Sample
from compare.candidates.packed import pack, unpack
from compare.candidates.peer import Peer


class Candidate(Peer):
    """One directory."""

    def write(self, source: Any, directory: Path, *, synced: bool) -> None:
        cache = Cache(str(directory), chunk_bytes="64MB")
        for row, (payload, metadata) in enumerate(source):
            cache[row] = pack(payload, metadata)
        cache.done()
        cache.merge()

    def open(self, directory: Path) -> None:
        self._ordered = StreamingDataset(str(directory), shuffle=False)
        self._shuffled = StreamingDataset(str(directory), shuffle=True)
        self._get = self._ordered.__getitem__

    def in_order(self, start: int, count: int) -> Iterator[Sample]:
        """From its first sample on: it cannot begin in the middle."""
        return map(unpack, islice(iter(self._ordered), count))

    def shuffled(self, rows: Sequence[int]) -> Iterator[Sample]:
        """So many samples, in an order of its own and without replacement."""
        return map(unpack, islice(iter(self._shuffled), len(rows)))

    def get_item(self, row: int) -> Sample:
        return unpack(self._get(row))

    def loader(self, directory: Path, count: int, workers: int, context: str | None) -> Any:
        """Its own loader; workers unpack the samples."""
        part = count / self.samples.count
        dataset = StreamingDataset(str(directory), shuffle=True, subsample=part, transform=unpack)
        given = {"persistent_workers": True, "multiprocessing_context": context} if workers else {}
        return StreamingDataLoader(dataset, batch_size=BATCH, num_workers=workers, collate_fn=list, **given)

    def row_of(self, given: Sample, asked: int) -> None:
        return None
