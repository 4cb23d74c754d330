"""`np.memmap`: payloads behind one another in one file, metadata as arrays beside it; rows that are known are looked up in blocks."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from plain import PlainWriter

from compare.candidates.candidate import Sample, blocks
from compare.candidates.peer import Peer

BLOCK = 1024


class Candidate(Peer):
    """A file of bytes and four arrays."""

    def write(self, source: Any, directory: Path, *, synced: bool) -> None:
        writer = PlainWriter(directory / "payloads.bin", synced=synced)
        writer.write(source)
        arrays = {"ends": np.cumsum([0, *writer.lengths])} | {
            name: np.array(column) for name, column in writer.columns.items()
        }
        for name, array in arrays.items():
            with (directory / f"{name}.npy").open("wb") as file:
                np.save(file, array)
                if synced:
                    file.flush()
                    os.fsync(file.fileno())

    def open(self, directory: Path) -> None:
        names = ("ends", "label", "score", "split")
        self._ends, self._label, self._score, self._split = (
            np.load(directory / f"{name}.npy", mmap_mode="r") for name in names
        )
        self._payloads = memoryview(np.memmap(directory / "payloads.bin", mode="r"))

    def close(self) -> None:
        del self._payloads, self._ends, self._label, self._score, self._split

    def in_order(self, start: int, count: int) -> Iterator[Sample]:
        payloads = self._payloads
        for begin in range(start, start + count, BLOCK):
            block = slice(begin, min(begin + BLOCK, start + count))
            starts = self._ends[block.start : block.stop + 1].tolist()
            values = (column[block].tolist() for column in (self._label, self._score, self._split))
            for first, last, label, score, split in zip(starts, starts[1:], *values, strict=False):
                yield bytes(payloads[first:last]), label, score, split

    def shuffled(self, rows: Sequence[int]) -> Iterator[Sample]:
        payloads = self._payloads
        for block in map(np.array, blocks(rows, BLOCK)):
            columns = (
                self._ends[block],
                self._ends[block + 1],
                self._label[block],
                self._score[block],
                self._split[block],
            )
            for first, last, label, score, split in zip(*(column.tolist() for column in columns), strict=True):
                yield bytes(payloads[first:last]), label, score, split

    def get_item(self, row: int) -> Sample:
        payload = bytes(self._payloads[self._ends[row] : self._ends[row + 1]])
        return payload, self._label[row].item(), self._score[row].item(), self._split[row].item()
