"""Blocks of samples as columns, for libraries that keep Arrow tables."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from compare.candidates.candidate import Sample

SCHEMA = pa.schema(
    [("payload", pa.large_binary()), ("label", pa.int64()), ("score", pa.float64()), ("split", pa.string())]
)


def batches(source: Any, rows: int) -> Iterator[pa.RecordBatch]:
    """The samples of a source in batches of so many rows."""
    samples = iter(source)
    while block := list(islice(samples, rows)):
        metadata = [row for _, row in block]
        columns = [[payload for payload, _ in block], *([row[name] for row in metadata] for name in SCHEMA.names[1:])]
        yield pa.record_batch(
            [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA
        )


def samples(batch: pa.RecordBatch | pa.Table) -> Iterator[Sample]:
    """The samples of a batch."""
    payload, label, score, split = (batch.column(name) for name in SCHEMA.names)
    return zip(
        payload.to_pylist(), label.to_numpy().tolist(), score.to_numpy().tolist(), split.to_pylist(), strict=True
    )
