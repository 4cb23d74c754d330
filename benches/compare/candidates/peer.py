"""What the peers have in common: they are given pairs of payload and metadata."""

from pathlib import Path
from typing import Any, NamedTuple

from sets import Row, SetSource

from compare.candidates.candidate import Candidate
from compare.candidates.loaders import Rows, map_loader


class Pair(NamedTuple):
    """Costs as much as a `CacheInput`."""

    data: bytes
    metadata: Row


class Peer(Candidate):
    """A candidate that needs nothing of this library."""

    def source(self) -> SetSource:
        return SetSource(self.samples, Pair)

    def loader(self, directory: Path, count: int, workers: int, context: str | None) -> Any:
        if not self.opened:
            self.open(directory)
            self.opened = True
        return map_loader(Rows(self, directory), self.samples.count, count, workers, context)
