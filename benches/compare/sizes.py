"""The sets by their letters, and how many samples of them are written and read."""

from dataclasses import replace

from sets import SampleSet

SIZES = {
    "A": SampleSet("64 B", 64, 1_000_000, 100_000),
    "B": SampleSet("1 KiB", 1 << 10, 200_000, 50_000),
    "C": SampleSet("100 KiB", 100 << 10, 3_000, 3_000),
    "E": SampleSet("lognormal around 20 KiB", 20 << 10, 12_000, 10_000, "lognormal"),
    "T": SampleSet("20 KiB text, LZ4", 20 << 10, 12_000, 10_000, "text"),
    "F": SampleSet("16 B, many rows", 16, 10_000_000, 100_000, metadata_ready=False),
    "F small": SampleSet("16 B, few rows", 16, 10_000, 100_000),
    "B cold": SampleSet("1 KiB", 1 << 10, 1 << 20, 20_000),
    "C cold": SampleSet("100 KiB", 100 << 10, 10_000, 2_500),
    "-": SampleSet("none", 16, 1, 1),
}

#: Fewer samples, for a look in some minutes. Caches hide more of the memory here.
QUICK = SIZES | {
    name: replace(SIZES[name], count=count)
    for name, count in {
        "A": 250_000,
        "B": 50_000,
        "C": 1_000,
        "E": 4_000,
        "T": 4_000,
        "F": 1_000_000,
        "B cold": 1 << 17,
        "C cold": 1_280,
    }.items()
}
