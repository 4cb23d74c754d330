"""What a program that uses the package sees of its types. Checked, never run."""

from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import polars as pl

import dataset_rt as drt
from dataset_rt import api


class Source:
    name = "a"

    def __iter__(self) -> Iterator[drt.CacheInput]:
        yield drt.CacheInput(b"", {"n": 1, "f": 0.5, "s": "x", "b": True})


class WithFingerprint(Source):
    fingerprint = "1"


class ArrowTable:
    """A table of any library."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        raise NotImplementedError


def write(runtime: drt.DatasetRuntime) -> None:
    source: drt.CacheSource = Source()
    sources: list[drt.CacheSource] = [source, WithFingerprint()]
    config = drt.WriterConfig(shard_compression=drt.ShardCompression(algo="lz4", ratio=2))
    assert_type(runtime.write_cache([Source()], Path("x")), list[drt.CacheWriteSuccess | drt.CacheWriteError])
    for result in runtime.write_cache(sources, "x", writer_config=config):
        match result:
            case drt.CacheWriteSuccess(name, path):
                assert_type(name, str)
                assert_type(path, Path)
            case drt.CacheWriteError(name, message):
                assert_type(message, str)


def open_sources(runtime: drt.DatasetRuntime) -> drt.CachedDataset:
    match runtime.from_cache_sources(Source(), "x", reader_config=drt.ReaderConfig(seed=1)):
        case drt.CacheSourcesDatasetSuccess(dataset, results):
            assert_type(dataset, drt.CachedDataset)
            assert_type(results, list[drt.CacheWriteResult])
            return dataset
        case drt.CacheSourcesDatasetError(_, message):
            assert_type(message, str)
            raise SystemExit(message)


def read(dataset: drt.CachedDataset, table: ArrowTable) -> None:
    for sample in dataset:
        assert_type(sample, drt.CachedSample)
        assert_type(sample.data, bytes)
        assert_type(sample.metadata, dict[str, api.MetadataValue])
    assert_type(dataset.get_item(0, 1), drt.CachedSample)
    assert_type(len(dataset), int)
    assert_type(dataset.cache_paths, list[Path])
    assert_type(dataset.reader_config.seed, int)
    assert_type(dataset.get_metadata(), pl.DataFrame)
    dataset.update_metadata(dataset.get_metadata())
    dataset.update_metadata(table)
    assert_type(dataset.dump_config("x"), Path)
    with drt.CachedDataset.from_config("x/dataset.json") as again:
        assert_type(again, drt.CachedDataset)


def migrate(dataset: drt.CachedDataset) -> None:
    match dataset.update_manifests(version=3):
        case drt.Ok(report):
            assert_type(report, drt.ManifestUpdateReport)
            assert_type(report.entries[0].path, Path)
        case drt.Err(error):
            assert_type(error, drt.ManifestUpdateError)
            assert_type(error.path, Path | drt.AbsentManifestTarget)


def mistakes(runtime: drt.DatasetRuntime, dataset: drt.CachedDataset) -> None:
    # The comments must be needed: both checkers tell those that are not.
    drt.DatasetRuntime(2)  # type: ignore[call-arg]
    runtime.write_cache("name", "x")  # type: ignore[arg-type]
    runtime.cached_dataset(["x"])  # type: ignore[call-arg]
    dataset.get_item("a", 0)  # type: ignore[arg-type]
    dataset.update_metadata({"a": [1]})  # type: ignore[arg-type]
