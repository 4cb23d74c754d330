"""`python -m fork_program METHOD ACTION FOLDER`: starts children while threads are busy with a runtime and its datasets."""

import ctypes
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from support import Listed, numbered, numbers, opened, write

import dataset_rt as drt

# A child that hangs is ended by its alarm.
SECONDS = 30
INHERITED: dict[Any, Any] = {}


def keep_busy(work: Callable[[], object]) -> None:
    """Repeat work in a thread until the process ends."""

    def run() -> None:
        while True:
            work()

    threading.Thread(target=run, daemon=True).start()


def prepare(base: Path, threads: bool) -> None:
    """Make what children inherit, and keep all its locks busy: from several threads, or only from the native ones."""
    runtime = drt.DatasetRuntime(num_workers=2)
    rows = [(bytes(300_000), {"number": number}) for number in range(40)]
    paths = write(runtime, base, Listed("large", rows), numbered("small", 5000))
    dataset = opened(runtime, paths, shuffle=True)
    shared, started, edited = opened(runtime, paths[:1]), iter(dataset), opened(runtime, paths[1:])
    next(started)
    INHERITED.update(runtime=runtime, dataset=dataset, edited=edited, started=started, unstarted=iter(dataset))
    shared.set_epoch_len(2**40)
    INHERITED["shared"] = iter(shared)
    INHERITED["id"] = (next(iter(dataset)).cache_id, 0)

    INHERITED["table"] = table = edited.get_metadata()
    if not threads:
        return
    keep_busy(lambda: sum(1 for _ in zip(dataset, range(200), strict=False)))
    keep_busy(lambda: (next(INHERITED["shared"]), repr(INHERITED["shared"])))
    keep_busy(lambda: next(INHERITED["shared"]))
    # Polars 1.x aborts when the interpreter ends while a daemon thread comes back from its native code.
    if not pl.__version__.startswith("1."):
        keep_busy(lambda: (edited.update_metadata(table), edited.get_metadata()))


def outcome(call: Callable[[], object]) -> str:
    """What a refused call says."""
    try:
        return f"went through: {call()!r}"
    except RuntimeError as error:
        return str(error)


def use(_base: str) -> None:
    """Everything inherited is refused as a whole, or does nothing."""
    runtime, dataset, edited = (INHERITED[name] for name in ("runtime", "dataset", "edited"))
    config = drt.ReaderConfig(seed=1)
    calls: list[Callable[[], object]] = [
        lambda: runtime.cached_dataset(dataset.cache_paths, reader_config=config),
        lambda: runtime.write_cache(numbered("new", 1), "nowhere"),
        lambda: runtime.write_cache(numbered("new", 1), "nowhere", writer_config=drt.WriterConfig(num_processes=1)),
        lambda: runtime.from_cache_sources(numbered("new", 1), "nowhere", reader_config=config),
        runtime.__enter__,
        lambda: iter(dataset),
        lambda: len(dataset),
        lambda: dataset.get_item(*INHERITED["id"]),
        lambda: dataset.set_epoch_len(1),
        dataset.get_metadata,
        edited.get_metadata,
        lambda: edited.update_metadata(INHERITED["table"]),
        dataset.__enter__,
        *(lambda name=name: next(INHERITED[name]) for name in ("started", "unstarted", "shared")),  # type: ignore[misc]
    ]
    for number, call in enumerate(calls):
        refusal = outcome(call)
        assert "create a new DatasetRuntime in this process" in refusal, (number, refusal)
    assert not Path("nowhere").exists()
    for name in ("runtime", "dataset", "edited", "started", "unstarted", "shared"):
        assert repr(INHERITED[name])
    for closable in (dataset, edited, runtime):
        closable.close()
        closable.close()
    INHERITED.clear()


def new(base: str) -> None:
    """A runtime of its own reads, writes and ends."""
    with drt.DatasetRuntime(num_workers=2) as runtime, tempfile.TemporaryDirectory(dir=base) as folder:
        assert numbers(opened(runtime, write(runtime, Path(folder), numbered("own", 300)))) == list(range(300))
        with opened(runtime, [Path(base) / "large"]) as dataset:
            assert numbers(dataset) == list(range(40))


def leave(_base: str) -> None:
    """End with everything alive."""


ACTIONS = {"use": use, "new": new, "exit": leave}


def child(action: str, base: str) -> None:
    signal.alarm(SECONDS)
    ACTIONS[action](base)


def in_raw_child(fork: Callable[[], int], action: str, base: str) -> int:
    """The exit code of a child that ends as a program does."""
    pid = fork()
    if pid == 0:
        child(action, base)
        sys.exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(method: str, action: str, base: str) -> None:
    # After a fork that Python does not know of it waits for threads that wanted the interpreter: there must be none.
    prepare(Path(base), threads=method != "c-fork")
    # A fork finds locks in some state or other: several of them.
    for number in range(8 if "fork" in method and method != "forkserver" else 1):
        # The native threads are busy with what comes behind the first sample.
        INHERITED["ahead", number] = iter(INHERITED["dataset"])
        next(INHERITED["ahead", number])
        if method == "os-fork":
            code: int | None = in_raw_child(os.fork, action, base)
        elif method == "c-fork":
            # Holds the interpreter, as C code does that forks, and tells Python nothing.
            code = in_raw_child(ctypes.PyDLL(None).fork, action, base)
        else:
            process = multiprocessing.get_context(method).Process(target=child, args=(action, base))
            process.start()
            process.join(SECONDS + 10)
            code = process.exitcode
        assert code == 0, code
    # The parent goes on.
    assert len(INHERITED["dataset"]) == 5040
    assert next(INHERITED["started"])


if __name__ == "__main__":
    main(*sys.argv[1:])
