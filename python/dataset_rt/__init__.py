"""Caches of preprocessed samples: written once, read back fast, filtered, reweighted and reproducibly.

The names are those of `dataset_rt.api`, which is loaded when the first of them is used: importing the package is cheap.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataset_rt.api import (
        AbsentManifestTarget,
        CachedDataset,
        CachedSample,
        CacheInput,
        CacheSource,
        CacheSourcesDatasetError,
        CacheSourcesDatasetResult,
        CacheSourcesDatasetSuccess,
        CacheWriteError,
        CacheWriteResult,
        CacheWriteSuccess,
        DatasetRuntime,
        Err,
        ManifestUpdateEntry,
        ManifestUpdateError,
        ManifestUpdateReport,
        Ok,
        ReaderConfig,
        Result,
        ShardCompression,
        SizedTorchIterableDataset,
        WriterConfig,
        WriterProfilerConfig,
        __version__,
    )

__all__ = [
    "AbsentManifestTarget",
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
    "DatasetRuntime",
    "Err",
    "ManifestUpdateEntry",
    "ManifestUpdateError",
    "ManifestUpdateReport",
    "Ok",
    "ReaderConfig",
    "Result",
    "ShardCompression",
    "SizedTorchIterableDataset",
    "WriterConfig",
    "WriterProfilerConfig",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dataset_rt import api

    globals().update({public: getattr(api, public) for public in __all__})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
