"""The native floor: builds the very same sample objects from the caches that the library wrote, in one thread."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from floors import NativeFloor, PythonFloor

from compare.candidates import candidate
from compare.candidates.candidate import Sample


class Candidate(candidate.Candidate):
    """Reads what the library wrote."""

    def open(self, directory: Path) -> None:
        (cache,) = (path for path in directory.iterdir() if path.name != "tmp")
        floor = PythonFloor(cache, 1_000_000, self.samples.columns())
        self._reader = NativeFloor(floor, cache, self.samples.payload_bytes).reader

    def close(self) -> None:
        del self._reader

    def in_order(self, start: int, count: int) -> Iterable[Any]:
        samples: Iterable[Any] = self._reader.samples(range(start, start + count))
        return samples

    def shuffled(self, rows: Sequence[int]) -> Iterable[Any]:
        samples: Iterable[Any] = self._reader.samples(rows)
        return samples

    def get_item(self, row: int) -> Any:
        return self._reader.get_item(0, row)

    def as_sample(self, given: Any) -> Sample:
        metadata = given.metadata
        return given.data, metadata["label"], metadata["score"], metadata["split"]
