"""PyTorch's loader over whatever can look up rows. PyTorch is imported only where it is needed."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compare.candidates.candidate import BATCH, Candidate


class Rows:
    """A map-style dataset over an open candidate. Every process opens the files itself; the rows of a batch are looked up together."""

    def __init__(self, candidate: Candidate, directory: Path) -> None:
        self._candidate, self._directory = candidate, directory
        self._opened_by: int | None = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_candidate": type(self._candidate)(self._candidate.samples), "_opened_by": None}

    def __len__(self) -> int:
        return self._candidate.samples.count

    def __getitems__(self, rows: Sequence[int]) -> list[Any]:
        if self._opened_by != os.getpid():
            if self._opened_by is not None:
                self._candidate.close()
            self._candidate.open(self._directory)
            self._opened_by = os.getpid()
        return list(self._candidate.shuffled(rows))


def map_loader(dataset: Any, rows: int, count: int, workers: int, context: str | None) -> Any:
    """So many samples in each pass, drawn with replacement."""
    from torch.utils.data import DataLoader, RandomSampler

    given = {"persistent_workers": True, "multiprocessing_context": context} if workers else {}
    sampler = RandomSampler(range(rows), replacement=True, num_samples=count)
    return DataLoader(dataset, BATCH, sampler=sampler, num_workers=workers, collate_fn=list, **given)
