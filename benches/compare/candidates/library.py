"""This library, and the published version of it: both by their public interface alone."""

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import polars as pl
from sets import SampleSet, SetSource

import dataset_rt as drt
from compare.candidates import candidate
from compare.candidates.candidate import BATCH, Sample


class Candidate(candidate.Candidate):
    """One cache. Its samples come in the library's own order; it always syncs."""

    draws = True

    def __init__(self, samples: SampleSet, threads: int = 2, version: str | None = None) -> None:
        super().__init__(samples)
        if version is not None and installed_version("dataset-rt") != version:
            raise SystemExit(f"found dataset-rt {installed_version('dataset-rt')}, not {version}")
        compression = drt.ShardCompression(algo="lz4" if samples.content == "text" else "none")
        self._config = drt.WriterConfig(show_progress=False, shard_compression=compression)
        self._runtime = drt.DatasetRuntime(num_workers=threads)

    def source(self) -> SetSource:
        return SetSource(self.samples, drt.CacheInput)

    def write(self, source: Any, directory: Path, *, synced: bool) -> None:
        (result,) = self._runtime.write_cache([source], directory, writer_config=self._config)
        if not isinstance(result, drt.CacheWriteSuccess):
            raise SystemExit(f"the cache could not be written: {result.message}")

    def open(self, directory: Path) -> None:
        self._ordered = self._dataset(directory, shuffle=False)
        self._shuffled = self._dataset(directory, shuffle=True)
        self._directory = directory
        self._weighted: drt.CachedDataset | None = None
        self._cache_id = int(self._ordered.get_metadata()["cache_id"][0])

    def _dataset(self, directory: Path, *, shuffle: bool, validate: bool = False) -> Any:
        """The cache opened once more."""
        (cache,) = (path for path in directory.iterdir() if path.name != "tmp")
        config = drt.ReaderConfig(seed=1, shuffle=shuffle, validate_cache=validate)
        return self._runtime.cached_dataset([cache], reader_config=config)

    def close(self) -> None:
        del self._ordered, self._shuffled, self._weighted

    def in_order(self, start: int, count: int) -> Iterable[Any]:
        """Goes on where the last pass ended."""
        self._ordered.set_epoch_len(count)
        return self._ordered

    def shuffled(self, rows: Sequence[int]) -> Iterable[Any]:
        """So many samples, which it draws itself with replacement."""
        self._shuffled.set_epoch_len(len(rows))
        return self._shuffled

    def weighted(self, rows: Sequence[int]) -> Iterable[Any]:
        if self._weighted is None:
            self._weighted = self.fresh_dataset(self._directory)
            self.reweigh(self._weighted, self.weighted_table(self._weighted))
        self._weighted.set_epoch_len(len(rows))
        return self._weighted

    def get_item(self, row: int) -> Any:
        return self._ordered.get_item(self._cache_id, row)

    def fresh(self, directory: Path, *, shuffled: bool, count: int, rows: Sequence[int] | None = None) -> Iterator[Any]:
        """Draws its own rows."""
        dataset = self._dataset(directory, shuffle=shuffled)
        dataset.set_epoch_len(count)
        yield from dataset

    def fresh_dataset(self, directory: Path) -> Any:
        return self._dataset(directory, shuffle=True)

    def weighted_table(self, dataset: Any) -> Any:
        weights = pl.Series("weight", self.samples.weights())
        return dataset.get_metadata().with_columns(weights)

    def reweigh(self, dataset: Any, table: Any) -> None:
        dataset.update_metadata(table)
        next(iter(dataset))

    def validate(self, directory: Path) -> None:
        self._dataset(directory, shuffle=True, validate=True)

    def loader(self, directory: Path, count: int, workers: int, context: str | None) -> Any:
        """With its defaults, but for how workers start."""
        given = {"multiprocessing_context": context} if workers else {}
        return self._dataset(directory, shuffle=True).to_torch_dataloader(
            batch_size=BATCH, samples_per_epoch=count, collate_fn=list, num_workers=workers, verbose=False, **given
        )

    def import_statement(self) -> str:
        return "import dataset_rt; dataset_rt.DatasetRuntime"

    def as_sample(self, given: Any) -> Sample:
        metadata = given.metadata
        return given.data, metadata["label"], metadata["score"], metadata["split"]

    def row_of(self, given: Any, asked: int) -> int:
        return int(given.sample_id)
