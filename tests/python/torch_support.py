"""What tests of the PyTorch adapters share, importable by loading workers and by ranks."""

import logging
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from typing import Any

from torch.utils.data import get_worker_info

import dataset_rt as drt

Identity = tuple[int, int]


def identity(sample: drt.CachedSample) -> Identity:
    return sample.cache_id, sample.sample_id


def identities(samples: list[drt.CachedSample]) -> list[Identity]:
    return [identity(sample) for sample in samples]


def tagged(samples: list[drt.CachedSample]) -> tuple[int, list[Identity]]:
    """A batch that says which worker made it."""
    info = get_worker_info()
    return (0 if info is None else info.id), identities(samples)


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
