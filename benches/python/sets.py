"""The sets of samples that the benchmarks write and read, with three metadata columns each. Needs no library that is measured."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

Row = dict[str, int | float | str]


@dataclass(frozen=True)
class SampleSet:
    """Samples of one kind; `count` is chosen so that the payloads exceed the processor's caches."""

    name: str
    #: Of each sample; for lengths that differ, the median.
    payload_bytes: int
    count: int
    #: Samples read in one measurement.
    batch: int
    content: Literal["random", "lognormal", "text"] = "random"
    #: Whether the metadata of all rows lies ready while they are written; otherwise it is made row by row, and takes no memory.
    metadata_ready: bool = True

    def payloads(self) -> list[bytes]:
        """A few distinct payloads, which the samples take in turn: making them must not be what is measured."""
        generator = random.Random(self.payload_bytes)
        if self.content == "text":
            return [text(self.payload_bytes, generator) for _ in range(16)]
        if self.content == "lognormal":
            lengths = (int(self.payload_bytes * generator.lognormvariate(0, 0.7)) for _ in range(128))
            return [generator.randbytes(length) for length in lengths]
        return [generator.randbytes(self.payload_bytes) for _ in range(min(16, self.count))]

    def row(self, index: int) -> Row:
        """Metadata of one sample. The floats are short decimals, which whoever keeps them as text does not change."""
        return {
            "label": index % 10,
            "score": index * 619 % 1024 / 1024,
            "split": ("train", "valid", "test")[index % 3],
        }

    def metadata(self) -> list[Row]:
        """Metadata of all samples."""
        return [self.row(index) for index in range(self.count)]

    def columns(self) -> dict[str, list[int | float | str]]:
        """The same as a list for each column."""
        names = list(self.row(0))
        values = zip(*(self.row(index).values() for index in range(self.count)), strict=True)
        return dict(zip(names, map(list, values), strict=True))

    def weights(self) -> list[float]:
        """A weight for each sample, between 0.1 and 2."""
        return [0.1 + 1.9 * (index * 0.7548776662466927 % 1.0) for index in range(self.count)]


def text(size: int, generator: random.Random) -> bytes:
    """So many bytes that LZ4 shrinks like ordinary text."""
    words = ["".join(generator.choices("etaoinshrdlu", k=generator.randint(2, 9))) for _ in range(3000)]
    return " ".join(generator.choices(words, k=size)).encode()[:size]


SETS = [
    SampleSet("64 B", 64, 1_000_000, 100_000),
    SampleSet("1 KiB", 1 << 10, 200_000, 50_000),
    SampleSet("20 KiB", 20 << 10, 12_000, 10_000),
    SampleSet("100 KiB", 100 << 10, 3_000, 3_000),
    SampleSet("4 MiB", 4 << 20, 64, 64),
]

#: The same with fewer samples, for a look in a minute. Caches hide more of the memory here.
QUICK_SETS = [SampleSet(one.name, one.payload_bytes, max(one.count // 4, 16), max(one.batch // 4, 16)) for one in SETS]


class SetSource:
    """The cache source of a sample set. `kind` makes a sample of payload and metadata: `CacheInput` of the library that is measured."""

    def __init__(self, samples: SampleSet, kind: Callable[[bytes, Row], Any]) -> None:
        self.name = f"bytes-{samples.payload_bytes}"
        #: So many of them are given out.
        self.rows = samples.count
        self._samples, self._kind = samples, kind
        self._payloads = samples.payloads()
        self._metadata = samples.metadata() if samples.metadata_ready else None

    def __iter__(self) -> Iterator[Any]:
        payloads, kind = self._payloads, self._kind
        distinct = len(payloads)
        rows = map(self._samples.row, range(self._samples.count)) if self._metadata is None else self._metadata
        for index, metadata in enumerate(islice(rows, self.rows)):
            yield kind(payloads[index % distinct], metadata)
