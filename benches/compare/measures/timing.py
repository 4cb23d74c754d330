"""How time is taken."""

import time
from collections.abc import Callable, Iterable

Figures = dict[str, float]


def consume(samples: Iterable[object]) -> None:
    """Takes samples one by one, as a training loop does."""
    for _ in samples:
        pass


def timed(work: Callable[[], object], samples: int = 1) -> Figures:
    """Seconds for each sample: by the clock, processor time of all threads, and of this one, which consumes."""
    wall, cpu, own = time.perf_counter(), time.process_time(), time.thread_time()
    work()
    own, cpu, wall = time.thread_time() - own, time.process_time() - cpu, time.perf_counter() - wall
    return {"value": wall / samples, "cpu": cpu / samples, "own": own / samples}
