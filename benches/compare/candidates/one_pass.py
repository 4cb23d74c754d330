"""One pass over the weights of all rows: nobody can begin to draw by them in less."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sets import SampleSet

from compare.candidates.candidate import Candidate as Base


class Candidate(Base):
    """Sums them up."""

    def __init__(self, samples: SampleSet) -> None:
        super().__init__(samples)
        self._weights = np.array(samples.weights())

    def fresh(self, directory: Path, *, shuffled: bool, count: int, rows: Sequence[int] | None = None) -> Iterator[Any]:
        yield self._weights.sum()

    def weighted_table(self, dataset: Any) -> Any:
        return self._weights

    def reweigh(self, dataset: Any, table: Any) -> None:
        table.sum()
