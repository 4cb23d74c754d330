"""`python -m exit_program NUMBER FOLDER`: a short program that ends in the middle of things. The number says which ones."""

import atexit
import builtins
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from support import QUIET, Listed, numbered, opened, write

import dataset_rt as drt


def repeated(work: Callable[[], object]) -> Callable[[], None]:
    """Work without end."""

    def run() -> None:
        while True:
            work()

    return run


def main(number: int, base: Path) -> None:
    choice = random.Random(number)
    runtime = drt.DatasetRuntime(num_workers=choice.randint(1, 4))
    rows = [(bytes(200_000), {"number": number}) for number in range(30)]
    paths = write(runtime, base, Listed("large", rows), numbered("small", 3000))
    shuffled, ordered = opened(runtime, paths, shuffle=True), opened(runtime, paths[1:])
    shuffled.set_epoch_len(2**40)

    # What stays alive, and where.
    kept = [iter(shuffled), iter(ordered), iter(shuffled)]
    for iterator in kept[:2]:
        for _ in range(choice.choice([1, 20, 130])):
            next(iterator)
    cycle: list[object] = [kept, runtime]
    cycle.append(cycle)
    builtins.kept = kept if choice.random() < 0.5 else None  # type: ignore[attr-defined]
    if choice.random() < 0.3:
        atexit.register(lambda: next(kept[0]))
    if choice.random() < 0.3:
        ordered.get_metadata()

    # Who is in the middle of what.
    endless = Listed("endless", repeated_rows())
    works: list[Callable[[], object]] = [
        lambda: next(kept[0]),
        lambda: sum(len(sample.data) for sample in ordered),
        lambda: opened(runtime, paths, validate_cache=True),
        lambda: ordered.update_metadata(ordered.get_metadata()),
        lambda: drt.DatasetRuntime(num_workers=2).close(),
        lambda: runtime.write_cache(endless, base / f"{time.monotonic_ns()}", writer_config=QUIET),
    ]
    for work in choice.sample(works, choice.randint(0, 3)):
        threading.Thread(target=repeated(work), daemon=True).start()
    time.sleep(choice.random() * 0.05)
    if choice.random() < 0.5:
        sys.exit(0)


def repeated_rows() -> object:
    """Rows without end."""
    while True:
        yield bytes(1000), {"number": 1}


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
