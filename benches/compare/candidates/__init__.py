"""Everyone who is measured: one module for each library. What they have in common is in `candidate`."""

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Entry:
    """One candidate: which module, in which environment, and in which role."""

    name: str
    module: str
    environment: Literal["ours", "published", "peers"]
    role: Literal["ours", "published", "peer", "floor"]
    #: What the package index calls what it needs.
    package: str | None = None
    #: Who writes what it reads: itself unless said; nobody if it reads nothing.
    reads: str | None = "itself"
    #: Whether its process can import `dataset_rt` of this repository.
    library: bool = False
    #: The sets on which it is near the front; it is not measured on others.
    sets: str = "ABCETF-"
    options: dict[str, Any] = field(default_factory=dict)


ENTRIES = {
    entry.name: entry
    for entry in (
        Entry("ours", "library", "ours", "ours", library=True),
        Entry("ours, 1 thread", "library", "ours", "ours", reads="ours", library=True, options={"threads": 1}),
        Entry("0.4.8", "library", "published", "published", options={"version": "0.4.8"}),
        Entry("lmdb", "lmdb", "peers", "peer", "lmdb"),
        Entry("lance", "lance", "peers", "peer", "pylance"),
        Entry("litdata", "litdata", "peers", "peer", "litdata", sets="CE"),
        Entry("HF datasets", "datasets", "peers", "peer", "datasets"),
        Entry("h5py", "h5py", "peers", "peer", "h5py"),
        Entry("array-record", "array_record", "peers", "peer", "array-record"),
        Entry("memmap", "memmap", "peers", "peer", "numpy"),
        Entry("plain writer", "plain", "peers", "floor", "lz4", reads=None),
        Entry("native", "native", "peers", "floor", reads="ours", library=True),
        Entry("memcpy", "copying", "peers", "floor", reads="ours", library=True, sets="BCE"),
        Entry("one pass", "one_pass", "peers", "floor", "numpy", reads=None),
        Entry("blake3", "hashing", "peers", "floor", "blake3", reads="ours"),
        Entry("disk", "raw_disk", "peers", "floor", reads="ours"),
        Entry("ready lists", "ready", "peers", "floor", reads=None, library=True),
        Entry("torch alone", "idle", "peers", "floor", reads=None),
        Entry("pydantic", "pydantic", "ours", "floor", reads=None),
    )
}

PEERS = tuple(name for name, entry in ENTRIES.items() if entry.role == "peer")
