"""The public surface. Everything here is known to pickles and error messages under this module's name."""

from dataset_rt._native import __version__
from dataset_rt.config import (
    DEFAULT_WRITER_CONFIG,
    CompressionAlgo,
    ReaderConfig,
    ShardCompression,
    WriterConfig,
    WriterProfilerConfig,
)
from dataset_rt.dataset import CachedDataset
from dataset_rt.protocols import CacheSource, SizedTorchIterableDataset
from dataset_rt.records import (
    BytesLike,
    CachedSample,
    CacheInput,
    CacheSourcesDatasetError,
    CacheSourcesDatasetResult,
    CacheSourcesDatasetSuccess,
    CacheWriteError,
    CacheWriteResult,
    CacheWriteSuccess,
    Metadata,
    MetadataValue,
)
from dataset_rt.results import (
    AbsentManifestTarget,
    Err,
    ManifestUpdateEntry,
    ManifestUpdateError,
    ManifestUpdateReport,
    Ok,
    Result,
)
from dataset_rt.runtime import DatasetRuntime

__all__ = [
    "DEFAULT_WRITER_CONFIG",
    "AbsentManifestTarget",
    "BytesLike",
    "CacheInput",
    "CacheSource",
    "CacheSourcesDatasetError",
    "CacheSourcesDatasetResult",
    "CacheSourcesDatasetSuccess",
    "CacheWriteError",
    "CacheWriteResult",
    "CacheWriteSuccess",
    "CachedDataset",
    "CachedSample",
    "CompressionAlgo",
    "DatasetRuntime",
    "Err",
    "ManifestUpdateEntry",
    "ManifestUpdateError",
    "ManifestUpdateReport",
    "Metadata",
    "MetadataValue",
    "Ok",
    "ReaderConfig",
    "Result",
    "ShardCompression",
    "SizedTorchIterableDataset",
    "WriterConfig",
    "WriterProfilerConfig",
    "__version__",
]

for _public in __all__:
    # Aliases are no classes and keep the module that typing gives them.
    if isinstance(globals()[_public], type):
        globals()[_public].__module__ = __name__
