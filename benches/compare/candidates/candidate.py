"""What a candidate can be asked for. Every sample is delivered as its payload and three metadata values, as Python objects."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from sets import SampleSet

#: Payload, label, score, split.
Sample = tuple[bytes, int, float, str]


class Candidate:
    """One way to keep the samples of a set. Row `n` is the `n`-th that was written."""

    #: Whether it gives out samples, so that they can be compared with what was written.
    delivers: ClassVar[bool] = True

    def __init__(self, samples: SampleSet) -> None:
        self.samples = samples

    def source(self) -> Any:
        """The samples as something to iterate over, which gives pairs of payload and metadata and has `rows`, their number."""
        raise NotImplementedError

    def write(self, source: Any, directory: Path, *, synced: bool) -> None:
        """Writes the samples of the source into an empty directory."""
        raise NotImplementedError

    def open(self, directory: Path) -> None:
        """Opens what was written."""
        raise NotImplementedError

    def close(self) -> None:
        """Lets go of all files."""

    def in_order(self, start: int, count: int) -> Iterable[Any]:
        """So many samples one after the other, from row `start` on."""
        raise NotImplementedError

    def shuffled(self, rows: Sequence[int]) -> Iterable[Any]:
        """These samples. All rows are known beforehand."""
        return map(self.get_item, rows)

    def weighted(self, rows: Sequence[int]) -> Iterable[Any]:
        """These samples; the rows were drawn by weight."""
        return self.shuffled(rows)

    def get_item(self, row: int) -> Any:
        """One sample; nobody knows which one is next."""
        raise NotImplementedError

    def as_sample(self, given: Any) -> Sample:
        """What was given out, for comparing it with what was written."""
        sample: Sample = given
        return sample

    def row_of(self, given: Any, asked: int) -> int | None:
        """Which row was given out where `asked` was asked for; `None` where nobody can tell."""
        return asked


def blocks(rows: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """The rows in blocks, for libraries that take many at once."""
    return (rows[start : start + size] for start in range(0, len(rows), size))


def block_rows(samples: SampleSet) -> int:
    """Rows of about one MiB, at most 1024 and at least 16."""
    return max(16, min(1024, (1 << 20) // samples.payload_bytes))
