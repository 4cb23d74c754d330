"""The floor of loaders: samples that were made before lie in a list."""

from pathlib import Path
from typing import Any

from compare.candidates.candidate import Candidate as Base
from compare.candidates.loaders import map_loader


class Candidate(Base):
    """A list of as many samples as a pass has."""

    def loader(self, directory: Path, count: int, workers: int, context: str | None) -> Any:
        from dataset_rt import CachedSample

        payloads, row = self.samples.payloads(), self.samples.row
        # Each payload is an object of its own, as those that are read are.
        made = [CachedSample(bytes(bytearray(payloads[n % len(payloads)])), row(n), 0, n) for n in range(count)]
        return map_loader(made, count, count, workers, context)
