"""What tests of the PyTorch adapters share, importable by loading workers and by ranks."""

import itertools
import logging
import multiprocessing
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from typing import Any

from plan_reference import deliveries, ordered_positions
from torch.utils.data import get_worker_info

import dataset_rt as drt
from dataset_rt.torch.plan import Plan

Identity = tuple[int, int]


def identity(sample: drt.CachedSample) -> Identity:
    return sample.cache_id, sample.sample_id


def identities(samples: list[drt.CachedSample]) -> list[Identity]:
    return [identity(sample) for sample in samples]


def flat(batches: Iterable[list[Any]]) -> list[Any]:
    return [identity for batch in batches for identity in batch]


def in_order(dataset: drt.CachedDataset) -> list[Identity]:
    """All rows of the table in its order."""
    frame = dataset.get_metadata()
    return list(zip(frame["cache_id"].to_list(), frame["sample_id"].to_list(), strict=True))


def tagged(samples: list[drt.CachedSample]) -> tuple[int, list[Identity]]:
    """A batch that says which worker made it."""
    info = get_worker_info()
    return (0 if info is None else info.id), identities(samples)


def tagged_pid(samples: list[drt.CachedSample]) -> tuple[int, Identity]:
    """A batch of one that says in which process it was made."""
    [identity] = identities(samples)
    return os.getpid(), identity


def declared(
    dataset: drt.CachedDataset, plan: Plan, workers: int, passes: int
) -> Iterator[list[tuple[int, list[Identity]]]]:
    """Batches of ordered passes, as torch should hand them out."""
    order = in_order(dataset)
    consumers = plan.consumers(0, workers)
    for completed in range(passes):
        streams = [ordered_positions(consumer, completed) for consumer in consumers]
        yield [
            (worker, [order[row] for row in itertools.islice(streams[worker], size)])
            for worker, size in deliveries(plan, 0, workers)
        ]


def fast_start() -> BaseContext:
    """Workers that start in no time: their server has imported everything once for all tests."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["dataset_rt.torch.loader", "torch_support"])
    return context


def loader(dataset: drt.CachedDataset, **given: Any) -> Any:
    """A loader that is quiet and yields identities, unless told otherwise."""
    defaults = {"collate_fn": identities, "num_workers": 0, "native_num_workers": 1, "verbose": False}
    if given.get("num_workers"):
        defaults["multiprocessing_context"] = fast_start()
    return dataset.to_torch_dataloader(**(defaults | given))


class Events(logging.Handler):
    """Log events of loaders in this process, as dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert record.levelno == logging.INFO
        self.events.append(parse_event(record.getMessage()))

    def named(self, name: str) -> list[dict[str, str]]:
        return [event for event in self.events if event["event"] == name]


def parse_event(line: str) -> dict[str, str]:
    assert "\n" not in line
    return dict(part.split("=", 1) for part in line.split(" "))


@contextmanager
def recorded_events() -> Iterator[Events]:
    logger = logging.getLogger("dataset_rt.loader")
    handler, level = Events(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
