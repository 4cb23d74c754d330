"""The disk alone: blocks of 1 MiB in order, records by eight threads where the order is another. Nothing is delivered."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from disk import dd, preads

from compare.candidates.candidate import Candidate as Base


class Candidate(Base):
    """Reads the files that the library wrote."""

    def fresh(
        self, directory: Path, *, shuffled: bool, count: int, rows: Sequence[int] | None = None
    ) -> Iterator[None]:
        (cache,) = (path for path in directory.iterdir() if path.name != "tmp")
        if shuffled:
            preads(cache, rows or ())
        else:
            dd(cache)
        yield from ()
