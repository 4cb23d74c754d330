"""Runs in the environment of the published package: does with it what lines of JSON on standard input ask for."""

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

import dataset_rt as drt


class Source:
    def __init__(self, name: str, rows: list[Any]) -> None:
        self.name = name
        self.rows = rows

    def __iter__(self) -> Iterator[Any]:
        for payload, metadata in self.rows:
            yield drt.CacheInput(base64.b64decode(payload), {key: decoded(value) for key, value in metadata.items()})


def decoded(value: Any) -> Any:
    """Floats travel as hexadecimal text in a list."""
    return float.fromhex(value[0]) if isinstance(value, list) else value


def encoded(value: Any) -> Any:
    if isinstance(value, float):
        return [value.hex()]
    return value if isinstance(value, (bool, int, str, list)) or value is None else str(value)


def described(dataset: Any) -> dict[str, Any]:
    """Everything that two libraries can be compared by."""
    table = dataset.get_metadata()
    samples = [
        [
            sample.cache_id,
            sample.sample_id,
            base64.b64encode(sample.data).decode(),
            {key: encoded(value) for key, value in sample.metadata.items()},
        ]
        for sample in dataset
    ]
    rows = [[encoded(value) for value in row] for row in table.iter_rows()]
    return {"samples": samples, "columns": table.columns, "rows": rows, "epoch_len": len(dataset)}


def edited(table: pl.DataFrame, rows: list[int], weights: list[float]) -> pl.DataFrame:
    return table[rows].with_columns(
        pl.Series("weight", weights, dtype=pl.Float64),
        pl.Series("an extra", [f"é{row}" if row % 2 else None for row in rows], dtype=pl.String),
        pl.Series("a category", ["even" if row % 2 == 0 else "odd" for row in rows], dtype=pl.Categorical),
        pl.Series("a list", [[row, None] for row in rows], dtype=pl.List(pl.Int32)),
        pl.Series("a price", [row * 100 for row in rows]).cast(pl.Decimal(12, 2)),
    )


class Peer:
    def __init__(self) -> None:
        self.runtime = drt.DatasetRuntime(num_workers=2)

    def write(self, base: str, sources: list[Any], algo: str, max_shard_bytes: int) -> list[Any]:
        config = drt.WriterConfig(
            show_progress=False, max_shard_bytes=max_shard_bytes, shard_compression=drt.ShardCompression(algo=algo)
        )
        results = self.runtime.write_cache(
            [Source(name, rows) for name, rows in sources], Path(base), writer_config=config
        )
        return [result._asdict() | {"path": str(getattr(result, "path", ""))} for result in results]

    def open(self, paths: list[str], validate: bool = False) -> Any:
        config = drt.ReaderConfig(seed=1, shuffle=False, validate_cache=validate)
        return self.runtime.cached_dataset([Path(path) for path in paths], reader_config=config)

    def read(self, paths: list[str], validate: bool) -> dict[str, Any]:
        return described(self.open(paths, validate))

    def export(self, paths: list[str], directory: str, rows: list[int], weights: list[Any], epoch_len: int) -> str:
        dataset = self.open(paths)
        dataset.update_metadata(edited(dataset.get_metadata(), rows, [decoded(weight) for weight in weights]))
        dataset.set_epoch_len(epoch_len)
        return str(dataset.dump_config(Path(directory)))

    def load(self, config: str) -> dict[str, Any]:
        return described(drt.CachedDataset.from_config(Path(config)))

    def migrate(self, paths: list[str]) -> list[Any]:
        report = self.open(paths).update_manifests(version=3).value
        return [[str(entry.path), entry.cache_id, entry.status] for entry in report.entries]


def main() -> None:
    peer = Peer()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"value": getattr(peer, request["do"])(**request["with"])}
        except BaseException as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
