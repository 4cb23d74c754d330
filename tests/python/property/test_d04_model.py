"""D4, D5, D6, D7, D10, D11: any sequence of calls does what the model does."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from dataset_model import DatasetModel
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from support import Listed, opened, write

import dataset_rt as drt

# Rows of three caches; some payloads are large enough for the threads.
COUNTS = {"a": 7, "b": 1, "c": 12}
UNKNOWN = (1, 2**64 - 1, 2**70, -1)


def payload(number: int) -> bytes:
    return number.to_bytes(70_000 if number % 4 == 0 else 3, "little")


def weights(count: int) -> st.SearchStrategy[list[float]]:
    """Equal ones and others, tiny, huge, and now and then one that is refused."""
    some = st.sampled_from([1.0, 2.0, 0.1, 3e-300, 7e100])
    refused = st.sampled_from([0.0, -1.0, float("nan"), float("inf")])
    return st.one_of(
        st.just([0.3] * count),
        st.lists(some, min_size=count, max_size=count),
        st.lists(st.one_of(some, some, some, refused), min_size=count, max_size=count),
    )


class Machine(RuleBasedStateMachine):
    """Does everything twice: with the dataset and with the model."""

    runtime: ClassVar[drt.DatasetRuntime]
    paths: ClassVar[list[Path]]
    iterators = Bundle("iterators")

    @initialize(
        seed=st.integers(0, 2**64 - 1), shuffle=st.booleans(), prefetch_size=st.sampled_from([1, 5, 64, 2**63 - 1])
    )
    def open(self, seed: int, shuffle: bool, prefetch_size: int) -> None:
        self.dataset = opened(self.runtime, self.paths, seed=seed, shuffle=shuffle, prefetch_size=prefetch_size)
        self.stored = self.dataset.get_metadata()
        self.table = self.stored
        self.model = DatasetModel(self.stored.select("cache_id", "sample_id").rows(), seed, shuffle)

    def both(self, real: Callable[[], Any], expected: Callable[[], Any], error: type[Exception]) -> bool:
        """Whether both calls succeed; otherwise both fail."""
        try:
            expected()
        except error:
            with pytest.raises(error):
                real()
            return False
        real()
        return True

    @rule(data=st.data(), choice=st.lists(st.integers(0, sum(COUNTS.values()) - 1), max_size=40), extra=st.booleans())
    def update_metadata(self, data: st.DataObject, choice: list[int], extra: bool) -> None:
        drawn = data.draw(weights(len(choice)))
        table = self.stored[choice].with_columns(weight=pl.Series(drawn, dtype=pl.Float64))
        if extra:
            table = table.with_columns(place=pl.Series(choice, dtype=pl.UInt8))
        rows = table.select("cache_id", "sample_id").rows()
        if self.both(lambda: self.dataset.update_metadata(table), lambda: self.model.update(rows, drawn), ValueError):
            self.table = table

    @rule()
    def reuse_metadata(self) -> None:
        self.dataset.update_metadata(self.dataset.get_metadata())
        self.model.update(self.model.rows, self.model.weights)

    @rule(epoch_len=st.one_of(st.integers(1, 50), st.sampled_from([0, -1, 2**63 - 1, 2**63])))
    def set_epoch_len(self, epoch_len: int) -> None:
        self.both(
            lambda: self.dataset.set_epoch_len(epoch_len), lambda: self.model.set_epoch_len(epoch_len), ValueError
        )

    @rule(target=iterators)
    def iter(self) -> Any:
        return iter(self.dataset), iter(self.model)

    @rule(pair=iterators, count=st.integers(1, 45))
    def next(self, pair: Any, count: int) -> None:
        real, expected = pair
        for _ in range(count):
            ids = next(expected, None)
            sample = next(real, None)
            assert (sample and (sample.cache_id, sample.sample_id)) == ids
            if sample is not None:
                self.check(sample)

    @rule(pair=consumes(iterators))
    def drop(self, pair: Any) -> None:
        """The window stays used up."""

    @rule(cache=st.integers(0, 2), sample_id=st.one_of(st.integers(0, 12), st.sampled_from(UNKNOWN)))
    def get_item(self, cache: int, sample_id: int) -> None:
        cache_id = self.stored["cache_id"].unique(maintain_order=True)[cache]
        self.both(
            lambda: self.check(self.dataset.get_item(cache_id, sample_id)),
            lambda: self.model.get_item(cache_id, sample_id),
            IndexError,
        )

    def check(self, sample: drt.CachedSample) -> None:
        """A sample is what was written under its ids, whatever the table says of it."""
        number = sample.metadata["number"]
        assert self.model.stored[number] == (sample.cache_id, sample.sample_id)
        assert sample.data == payload(number)

    @invariant()
    def lengths_and_tables_agree(self) -> None:
        assert len(self.dataset) == len(self.model)
        assert self.dataset.get_metadata().equals(self.table)

    def teardown(self) -> None:
        if hasattr(self, "dataset"):
            self.dataset.close()


def test_d04_any_sequence_of_calls_does_what_the_model_does(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    numbers = itertools.count()
    sources = [
        Listed(name, [(payload(number), {"number": number}) for number in itertools.islice(numbers, count)])
        for name, count in COUNTS.items()
    ]
    Machine.runtime, Machine.paths = runtime, write(runtime, tmp_path, *sources)
    profile = settings(max_examples=80, stateful_step_count=25, deadline=None, derandomize=True, database=None)
    run_state_machine_as_test(Machine, settings=profile)
