"""The sets of samples that the benchmarks write and read: one payload size each, three metadata columns."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from dataset_rt import CacheInput


@dataclass(frozen=True)
class SampleSet:
    """Samples of one payload size; `count` is chosen so that the payloads exceed the processor's caches."""

    name: str
    payload_bytes: int
    count: int
    #: Samples read in one measurement.
    batch: int

    def payloads(self) -> list[bytes]:
        """A few distinct payloads, which the samples take in turn: making them must not be what is measured."""
        generator = random.Random(self.payload_bytes)
        return [generator.randbytes(self.payload_bytes) for _ in range(min(16, self.count))]

    def metadata(self) -> list[dict[str, int | float | str]]:
        """Metadata of all samples."""
        generator = random.Random(self.count)
        return [
            {"label": index % 10, "score": generator.random(), "split": ("train", "valid", "test")[index % 3]}
            for index in range(self.count)
        ]


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
    """The cache source of a sample set."""

    def __init__(self, samples: SampleSet) -> None:
        self.name = f"bytes-{samples.payload_bytes}"
        self._payloads = samples.payloads()
        self._metadata = samples.metadata()

    def __iter__(self) -> Iterator[CacheInput]:
        payloads = self._payloads
        distinct = len(payloads)
        for index, metadata in enumerate(self._metadata):
            yield CacheInput(payloads[index % distinct], metadata)
