"""`memcpy`: payloads of the caches that the library wrote, copied into two buffers in turn, and no objects made."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from floors import CopyFloor, PreparedFloor, PythonFloor

from compare.candidates import candidate


class Candidate(candidate.Candidate):
    """Copies the payloads of the rows it is given."""

    delivers = False

    def open(self, directory: Path) -> None:
        (cache,) = (path for path in directory.iterdir() if path.name != "tmp")
        floor = PreparedFloor(PythonFloor(cache, 0, self.samples.columns()))
        self._copying = CopyFloor(floor, max(map(len, self.samples.payloads())))

    def close(self) -> None:
        del self._copying

    def in_order(self, start: int, count: int) -> Iterator[None]:
        return self.shuffled(range(start, start + count))

    def shuffled(self, rows: Sequence[int]) -> Iterator[None]:
        self._copying.copy(rows, buffers=2)
        yield from ()
