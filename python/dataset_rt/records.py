"""Named tuples that go in and come out: samples, and what became of each source of a write."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from dataset_rt.dataset import CachedDataset

BytesLike: TypeAlias = bytes | bytearray | memoryview
MetadataValue: TypeAlias = bool | int | float | str
Metadata: TypeAlias = Mapping[str, MetadataValue]


class CacheInput(NamedTuple):
    """One sample for a cache: payload bytes, and values to filter and weight it by.

    Attributes:
        data: Bytes, or an object that shows its memory, such as an array; of any length, also 0.
        metadata: Keys are text, values `bool`, `int`, `float` or `str`. Every sample of a source has the same keys with the
            same kinds of value.

    Examples:
        >>> data, metadata = CacheInput(b"pixels", {"label": 3})
        >>> metadata["label"]
        3
    """

    data: BytesLike
    metadata: Metadata


class CachedSample(NamedTuple):
    """One sample from a cache.

    Attributes:
        data: The payload.
        metadata: The values that were stored with it, in the order of their keys.
        cache_id: The cache it is from.
        sample_id: Its place there, from 0. Together with `cache_id` it identifies the sample for good.
    """

    data: bytes
    metadata: dict[str, MetadataValue]
    cache_id: int
    sample_id: int


class CacheWriteSuccess(NamedTuple):
    """A source that is now a cache in the directory `path`."""

    source_name: str
    path: Path


class CacheWriteError(NamedTuple):
    """A source that became no cache, and why. A source without a usable name is called `source[i]`."""

    source_name: str
    message: str


CacheWriteResult: TypeAlias = CacheWriteSuccess | CacheWriteError


class CacheSourcesDatasetSuccess(NamedTuple):
    """A dataset over every source that has a cache; `results` tells about each source."""

    dataset: "CachedDataset"
    results: list[CacheWriteResult]


class CacheSourcesDatasetError(NamedTuple):
    """No dataset could be made; `results` tells about each source."""

    results: list[CacheWriteResult]
    message: str


CacheSourcesDatasetResult: TypeAlias = CacheSourcesDatasetSuccess | CacheSourcesDatasetError
