"""What writing is measured against: as little as one can do in plain Python."""

import os
from collections.abc import Iterable
from pathlib import Path


class PlainWriter:
    """Appends payloads to one file and collects the metadata in lists, in one thread, and syncs only when told to."""

    def __init__(self, path: Path, *, synced: bool = False) -> None:
        self._path = path
        self._synced = synced
        self.lengths: list[int] = []
        self.columns: dict[str, list[int | float | str]] = {}

    def write(self, source: Iterable[tuple[bytes, dict[str, int | float | str]]]) -> None:
        """Writes all samples of the source."""
        columns, lengths = self.columns, self.lengths
        with self._path.open("wb") as file:
            for data, metadata in source:
                file.write(data)
                lengths.append(len(data))
                for name, value in metadata.items():
                    columns.setdefault(name, []).append(value)
            if self._synced:
                file.flush()
                os.fsync(file.fileno())
