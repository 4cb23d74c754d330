"""PyTorch alone: loading workers that have nothing to load."""

from pathlib import Path
from typing import Any

from compare.candidates.candidate import Candidate as Base
from compare.candidates.loaders import map_loader


class Candidate(Base):
    """No samples."""

    def loader(self, directory: Path, count: int, workers: int, context: str | None) -> Any:
        return map_loader([None] * 8, 8, count, workers, context)
