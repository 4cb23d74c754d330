"""Configurations: frozen, strict, checked at construction and once more by the native code."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

CompressionAlgo: TypeAlias = Literal["none", "lz4"]

_MAX_INT64 = 2**63 - 1
_MAX_UINT64 = 2**64 - 1

Size: TypeAlias = Annotated[int, Field(ge=1, le=_MAX_INT64)]


class _Config(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=False)


class ShardCompression(_Config):
    """How payloads are compressed, one by one, in new shards.

    `ratio` is a note that goes into the manifest: the compression that the writer of the cache expected. Without
    compression it is exactly 1.0.

    >>> ShardCompression(algo="lz4", ratio=2.5)
    ShardCompression(algo='lz4', ratio=2.5)
    """

    algo: CompressionAlgo = "none"
    ratio: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0

    @model_validator(mode="after")
    def _ratio_fits_algo(self) -> Self:
        if self.algo == "none" and self.ratio != 1.0:
            raise ValueError(
                f"ratio must be 1.0 with algo='none', found {self.ratio}; use algo='lz4' or leave ratio out"
            )
        return self


class WriterProfilerConfig(_Config):
    """Whether, and where, a write leaves a JSON summary of the time that its stages took."""

    enabled: bool = False
    # A string is a path; the strict rule alone would refuse it.
    path: Annotated[Path, Field(strict=False)] = Path("dataset_rt_profile.json")


class WriterConfig(_Config):
    """How caches are written.

    `num_processes` counts spawned processes that each write whole sources; 0 writes in the calling process.
    `process_timeout_seconds` limits the start of such a process and each source it is given.
    `prefetch_size` bounds the jobs in flight, and `max_shard_bytes` is the size at which the next shard begins.
    `validate_cache` verifies the checksums of an existing cache before it is reused.
    """

    num_processes: Annotated[int, Field(ge=0, le=_MAX_INT64)] = 0
    process_timeout_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 3600.0
    prefetch_size: Size = 64
    max_shard_bytes: Size = 64 * 1024 * 1024
    # Nested configurations may be given as plain mappings; their own fields stay strict.
    shard_compression: Annotated[ShardCompression, Field(strict=False)] = ShardCompression()
    show_progress: bool = True
    validate_cache: bool = False
    profiler: Annotated[WriterProfilerConfig, Field(strict=False)] = WriterProfilerConfig()


class ReaderConfig(_Config):
    """How a dataset is read.

    `seed` decides the shuffled draws, `prefetch_size` bounds the samples prepared ahead of an iterator, `shuffle` chooses
    between weighted draws with replacement and table order, and `validate_cache` verifies all checksums at open.
    """

    seed: Annotated[int, Field(ge=0, le=_MAX_UINT64)]
    prefetch_size: Size = 64
    shuffle: bool = True
    validate_cache: bool = False


DEFAULT_WRITER_CONFIG = WriterConfig()
