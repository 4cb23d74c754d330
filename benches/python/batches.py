"""Passes over the batches of a data loader, whoever made it."""

import time
from collections.abc import Iterable, Sized


def first_batch(loader: Iterable[Sized]) -> float:
    """Seconds until the first batch of a pass is there; the rest of the pass is read, but not measured."""
    started = time.perf_counter()
    batches = iter(loader)
    next(batches)
    taken = time.perf_counter() - started
    for _ in batches:
        pass
    return taken
