"""Configurations: frozen, strict, checked at construction and once more by the native code."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from dataset_rt.paths import no_path

CompressionAlgo: TypeAlias = Literal["none", "lz4"]

_MAX_INT64 = 2**63 - 1
_MAX_UINT64 = 2**64 - 1

Size: TypeAlias = Annotated[int, Field(ge=1, le=_MAX_INT64)]


class _Config(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=False)


class ShardCompression(_Config):
    """How payloads are compressed, one by one, in new shards.

    Attributes:
        algo (str): `"none"` (the default) or `"lz4"`.
        ratio (float): A note that goes into the manifest: the compression that the writer of the cache expected, finite and above 0.
            Default 1.0, and exactly that without compression.

    Examples:
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
    """Whether, and where, a write leaves a JSON summary of the time that its stages took.

    Attributes:
        enabled (bool): Default `False`.
        path (Path): The file, which is replaced. Default `dataset_rt_profile.json` in the working directory.
    """

    enabled: bool = False
    # A string is a path; the strict rule alone would refuse it.
    path: Annotated[Path, Field(strict=False)] = Path("dataset_rt_profile.json")

    @field_validator("path")
    @classmethod
    def _path_names_a_file(cls, path: Path) -> Path:
        # An empty text has become the working directory.
        found = no_path(str(path)) if path.name else f"the directory '{path}'"
        if found:
            raise ValueError(f"path must name a file, found {found}; the default is 'dataset_rt_profile.json'")
        return path


class WriterConfig(_Config):
    """How caches are written.

    Attributes:
        num_processes (int): Spawned processes that each write whole sources. Default 0: everything happens in the calling process.
        process_timeout_seconds (float): The limit for the start of such a process, and for each source it is given. Default 3600.0.
        prefetch_size (int): The most jobs in flight, each of up to 256 samples; as many as there are native threads are enough.
            1 ... 2^63-1, default 64.
        max_shard_bytes (int): A shard that would grow beyond this is ended before, unless it is empty. 1 ... 2^63-1, default 64 MiB.
        shard_compression (ShardCompression): Default `ShardCompression()`, which compresses nothing.
        show_progress (bool): Whether a terminal or a notebook shows how far the write is. Default `True`.
        validate_cache (bool): Whether the checksums of an existing cache are verified before it is reused. Default `False`.
        profiler (WriterProfilerConfig): Default `WriterProfilerConfig()`, which writes nothing.
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

    Attributes:
        seed (int): Decides the shuffled draws. 0 ... 2^64-1; there is no default.
        prefetch_size (int): The most samples prepared ahead of an iterator. 1 ... 2^63-1, default 64.
        shuffle (bool): `True`, the default, draws rows by weight, with replacement; `False` reads them in table order.
        validate_cache (bool): Whether all checksums are verified when the dataset is opened. Default `False`.
    """

    seed: Annotated[int, Field(ge=0, le=_MAX_UINT64)]
    prefetch_size: Size = 64
    shuffle: bool = True
    validate_cache: bool = False


DEFAULT_WRITER_CONFIG = WriterConfig()
