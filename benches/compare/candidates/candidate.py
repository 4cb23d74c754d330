"""What a candidate can be asked for. Every sample is delivered as its payload and three metadata values, as Python objects."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from sets import SampleSet

#: Samples in a batch of a loader.
BATCH = 64

#: Payload, label, score, split.
Sample = tuple[bytes, int, float, str]


class Candidate:
    """One way to keep the samples of a set. Row `n` is the `n`-th that was written."""

    #: Whether it gives out samples, so that they can be compared with what was written.
    delivers: ClassVar[bool] = True

    #: Whether it draws shuffled samples itself.
    draws: ClassVar[bool] = False

    def __init__(self, samples: SampleSet) -> None:
        self.samples = samples
        #: Whether what was written is open.
        self.opened = False

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

    def fresh(self, directory: Path, *, shuffled: bool, count: int, rows: Sequence[int] | None = None) -> Iterator[Any]:
        """Opens what was written once more, gives out samples, and closes it. `rows` are those that shuffled samples come from."""
        other = type(self)(self.samples)
        other.open(directory)
        yield from other.shuffled(rows or ()) if shuffled else other.in_order(0, count)
        other.close()

    def fresh_dataset(self, directory: Path) -> Any:
        """What new weights are given to."""

    def weighted_table(self, dataset: Any) -> Any:
        """New weights, in the form in which they are given."""
        raise NotImplementedError

    def reweigh(self, dataset: Any, table: Any) -> None:
        """Gives new weights and draws a sample."""
        raise NotImplementedError

    def validate(self, directory: Path) -> None:
        """Verifies everything that was written."""
        raise NotImplementedError

    def loader(self, directory: Path, count: int, workers: int, context: str | None) -> Any:
        """A data loader that gives shuffled samples in lists of `BATCH`, with persistent workers if any."""
        raise NotImplementedError

    def import_statement(self) -> str:
        """What a program begins with."""
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
