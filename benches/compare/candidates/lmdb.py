"""LMDB as its documentation advises for speed: appended in key order in few transactions, read without locks and without copies."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import lmdb

from compare.candidates.candidate import Sample, block_rows
from compare.candidates.packed import pack, unpack
from compare.candidates.peer import Peer

#: Values are taken as views into the map from this size on; below, making the view takes longer than the copy.
VIEWS_FROM = 4096


def key(row: int) -> bytes:
    """Big end first: the order of the keys is that of the rows."""
    return row.to_bytes(8, "big")


class Candidate(Peer):
    """One environment, one value for each sample."""

    def write(self, source: Any, directory: Path, *, synced: bool) -> None:
        size = sum(map(len, self.samples.payloads())) // len(self.samples.payloads())
        room = 2 * self.samples.count * (size + 512) + (64 << 20)
        environment = lmdb.open(str(directory / "lmdb"), map_size=room, sync=False, meminit=False)
        samples = enumerate(source)
        while block := list(islice(samples, 8 * block_rows(self.samples))):
            with environment.begin(write=True) as transaction:
                pairs = [(key(row), pack(payload, metadata)) for row, (payload, metadata) in block]
                transaction.cursor().putmulti(pairs, append=True)
        if synced:
            environment.sync(True)
        environment.close()

    def open(self, directory: Path) -> None:
        self._environment = lmdb.open(str(directory / "lmdb"), readonly=True, lock=False, readahead=True)
        self._transaction = self._environment.begin(buffers=self.samples.payload_bytes >= VIEWS_FROM)
        self._get = self._transaction.get

    def close(self) -> None:
        self._get = None
        self._transaction.abort()
        self._environment.close()

    def in_order(self, start: int, count: int) -> Iterator[Sample]:
        cursor = self._transaction.cursor()
        cursor.set_key(key(start))
        return map(unpack, islice(cursor.iternext(keys=False), count))

    def shuffled(self, rows: Sequence[int]) -> Iterable[Sample]:
        get = self._get
        return (unpack(get(row.to_bytes(8, "big"))) for row in rows)

    def get_item(self, row: int) -> Sample:
        return unpack(self._get(row.to_bytes(8, "big")))
