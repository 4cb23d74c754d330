"""h5py: payloads behind one another in one contiguous dataset of bytes, written and read in blocks; metadata as columns in memory."""

import os
from collections.abc import Iterator
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from compare.candidates.candidate import Sample, block_rows
from compare.candidates.peer import Peer


class Candidate(Peer):
    """One file."""

    def write(self, source: Any, directory: Path, *, synced: bool) -> None:
        lengths = [len(payload) for payload in self.samples.payloads()]
        total = sum(lengths[row % len(lengths)] for row in range(source.rows))
        ends, label, score, split = [0], [], [], []
        with h5py.File(directory / "data.h5", "w", libver="latest") as file:
            payloads = file.create_dataset("payloads", (total,), "u1")
            samples = iter(source)
            while block := list(islice(samples, block_rows(self.samples))):
                parts = [payload for payload, _ in block]
                start = ends[-1]
                ends.extend(islice(accumulate(map(len, parts), initial=start), 1, None))
                payloads[start : ends[-1]] = np.frombuffer(b"".join(parts), "u1")
                for _, metadata in block:
                    label.append(metadata["label"])
                    score.append(metadata["score"])
                    split.append(metadata["split"])
            file["ends"], file["label"], file["score"] = np.array(ends), np.array(label), np.array(score)
            file["split"] = np.array(split, "S")
            file.flush()
        if synced:
            with (directory / "data.h5").open("rb") as written:
                os.fsync(written.fileno())

    def open(self, directory: Path) -> None:
        self._file = h5py.File(directory / "data.h5", "r")
        self._payloads = self._file["payloads"]
        self._ends, self._label, self._score = (self._file[name][:].tolist() for name in ("ends", "label", "score"))
        self._split = [split.decode() for split in self._file["split"][:].tolist()]

    def close(self) -> None:
        self._file.close()

    def in_order(self, start: int, count: int) -> Iterator[Sample]:
        size = block_rows(self.samples)
        for begin in range(start, start + count, size):
            end = min(begin + size, start + count)
            ends = self._ends[begin : end + 1]
            block = self._payloads[ends[0] : ends[-1]].tobytes()
            payloads = [block[a - ends[0] : b - ends[0]] for a, b in pairwise(ends)]
            yield from zip(
                payloads, self._label[begin:end], self._score[begin:end], self._split[begin:end], strict=True
            )

    def get_item(self, row: int) -> Sample:
        payload = self._payloads[self._ends[row] : self._ends[row + 1]].tobytes()
        return payload, self._label[row], self._score[row], self._split[row]
