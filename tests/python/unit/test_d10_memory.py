"""D10: whose memory a table is in: what is taken over, what is copied, and what is let go of."""

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from support import Listed, numbered, opened, run_python, write


def weighted(frame: pl.DataFrame, step: int) -> pl.DataFrame:
    return frame.with_columns(weight=pl.int_range(pl.len()) * step % 97 + 1.0)


@pytest.mark.parametrize(
    "rows",
    [
        pl.DataFrame.clear,
        lambda frame: frame.reverse(),
        lambda frame: frame.filter(pl.col("number") % 3 == 0),
        lambda frame: pl.concat([frame.head(9000), frame]),
        lambda frame: frame.sample(fraction=1, shuffle=True, seed=1),
    ],
    ids=["as they are", "reversed", "some", "some twice", "mixed"],
)
def test_d10_new_weights_for_the_same_rows_draw_as_a_table_given_anew(runtime, tmp_path, rows):
    paths = write(runtime, tmp_path, numbered("a", 20_000), numbered("b", 15_000))
    dataset = opened(runtime, paths, shuffle=True)
    if rows is not pl.DataFrame.clear:
        dataset.update_metadata(rows(dataset.get_metadata()))
    for step in (7, 11):
        frame = weighted(dataset.get_metadata(), step)
        dataset.update_metadata(frame)
        # The same ids in other memory, and a table that nothing was drawn from yet.
        other = opened(runtime, paths, shuffle=True)
        other.update_metadata(frame.with_columns(pl.col("cache_id", "sample_id").cast(pl.Int64)))
        drawn = [(sample.cache_id, sample.sample_id) for sample in dataset]
        assert drawn == [(sample.cache_id, sample.sample_id) for sample in other]
        given = frame.select("cache_id", "sample_id").unique()
        assert (
            pl.DataFrame(drawn, schema=given.schema, orient="row").unique().join(given, on=given.columns).height > 1000
        )


def test_d10_arrays_that_are_changed_in_place_count_when_they_are_given(runtime, tmp_path):
    rows = 20_000
    paths = write(runtime, tmp_path, numbered("a", rows))
    dataset, other = opened(runtime, paths, shuffle=True), opened(runtime, paths, shuffle=True)
    cache_ids, numbers_ = np.zeros(rows, np.uint64), np.arange(rows)
    cache_ids[:] = dataset.get_metadata()["cache_id"][0]
    sample_ids, weights = np.arange(rows, dtype=np.uint64), np.arange(rows) % 7 + 1.0

    def frame():
        return pa.table(
            {"cache_id": cache_ids, "sample_id": sample_ids, "number": numbers_, "weight": weights}
        )  # none of them is copied

    def drawn(samples):
        return [(sample.cache_id, sample.sample_id) for sample in samples]

    for _ in range(3):
        dataset.update_metadata(frame())
        other.update_metadata(frame())
        started, expected_ids = iter(dataset), sample_ids.copy()
        expected = drawn(other)
        # Neither what was given nor what is given next is the dataset's own.
        weights[:] = weights[::-1].copy() * 3
        sample_ids[:] = np.roll(sample_ids, 5)
        assert drawn(started) == expected
        assert dataset.get_metadata()["sample_id"].to_list() == expected_ids.tolist()
    in_order = opened(runtime, paths)
    for _ in range(2):
        in_order.update_metadata(frame())
        assert [sample.sample_id for sample in in_order] == sample_ids.tolist()
        sample_ids[:] = sample_ids[::-1].copy()


KEPT = """
import sys
import polars as pl
import dataset_rt as drt

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

def changed(frame, way, step):
    frame = frame.with_columns(weight=pl.int_range(pl.len()) % 7 + 1.0 + step)
    if way == "arrow":
        return frame.to_arrow()
    if way == "other":
        return frame.with_columns(number=pl.col("number") + 1, extra=pl.int_range(pl.len()))
    return frame

runtime = drt.DatasetRuntime(num_workers=1)
dataset = runtime.cached_dataset([sys.argv[1]], reader_config=drt.ReaderConfig(seed=1))
for step in range(400):
    dataset.update_metadata(changed(dataset.get_metadata(), sys.argv[2], step))
    if step == 100:
        base = anonymous()
print(anonymous() - base)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no other way to see the memory of a process")
@pytest.mark.parametrize("way", ["frame", "arrow", "other"])
def test_d10_tables_that_came_back_are_let_go_of(runtime, tmp_path, way):
    (path,) = write(runtime, tmp_path, Listed("a", [(b"", {"number": row, "text": "x" * 20}) for row in range(20_000)]))
    kept = int(run_python(KEPT, str(path), way).stdout)
    # A column of each of 300 tables would be 46,875 KiB.
    assert kept < 15_000, f"{kept} KiB"
