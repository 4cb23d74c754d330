"""Memory that no file stands behind, in bytes. Each measure has a process of its own."""

import threading
from collections.abc import Callable

from memory import status

from compare.held import Held
from compare.measures.timing import Figures

#: Samples between two looks at the memory while reading.
STEP = 500


def iterating(held: Held, count: int, seed: int, *, in_rows: bool = False) -> Figures:
    """The most while shuffled samples are read, beyond what there was before the set was opened; `in_rows`: for each row."""
    rows = None if held.candidate.draws else held.rows(count, seed)
    start = most = status("RssAnon")
    for number, _ in enumerate(held.candidate.fresh(held.data, shuffled=True, count=count, rows=rows)):
        if number % STEP == 0:
            most = max(most, status("RssAnon"))
    return {"value": (most - start) / (held.count if in_rows else 1)}


def new_weights_kept(held: Held, count: int, seed: int) -> Figures:
    """What is kept for each row after new weights were given and many samples were drawn."""
    dataset = held.candidate.fresh_dataset(held.data)
    start = status("RssAnon")
    held.candidate.reweigh(dataset, held.candidate.weighted_table(dataset))
    # As many as it takes until the sampling table is there, which is filled meanwhile.
    for _ in dataset:
        pass
    return {"value": (status("RssAnon") - start) / held.count}


def new_weights_peak(held: Held, count: int, seed: int) -> Figures:
    """The most for each row while new weights are given and a sample is drawn, beyond what there was with the table."""
    dataset = held.candidate.fresh_dataset(held.data)
    table = held.candidate.weighted_table(dataset)
    start = status("RssAnon")
    return {"value": (peak_during(lambda: held.candidate.reweigh(dataset, table)) - start) / held.count}


def peak_during(work: Callable[[], object]) -> int:
    """The most, looked at every millisecond by a thread."""
    over = threading.Event()
    most = [status("RssAnon")]

    def watch() -> None:
        while not over.wait(0.001):
            most.append(status("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        over.set()
        watcher.join()
    return max(*most, status("RssAnon"))
