"""What the peers have in common: they are given pairs of payload and metadata."""

from typing import NamedTuple

from sets import Row, SetSource

from compare.candidates.candidate import Candidate


class Pair(NamedTuple):
    """Costs as much as a `CacheInput`."""

    data: bytes
    metadata: Row


class Peer(Candidate):
    """A candidate that needs nothing of this library."""

    def source(self) -> SetSource:
        return SetSource(self.samples, Pair)
