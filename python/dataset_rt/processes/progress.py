"""One line on stderr that counts finished sources: on a terminal and in notebooks, nowhere else."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TextIO


@contextmanager
def progress_line(
    total: int,
    settled: int,
    *,
    show: bool,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[int], None]]:
    """Give a function that shows how many sources are done beyond those `settled` before. The line ends with the block."""
    stream = stream or sys.stderr
    # Consoles without a standard error have None there.
    if not show or stream is None or not _updates_lines(stream):
        yield lambda _done: None
        return
    started = clock()
    width = 0

    def draw(done: int) -> None:
        nonlocal width
        text = f"[{settled + done}/{total}] sources"
        left = total - settled - done
        if done and left:
            seconds = round((clock() - started) / done * left)
            text += f", ETA {timedelta(seconds=seconds)}"
        # Blanks instead of an escape sequence, which notebooks would show.
        _write(stream, f"\r{text:<{width}}")
        width = len(text)

    draw(0)
    try:
        yield draw
    finally:
        _write(stream, "\n")


def _updates_lines(stream: TextIO) -> bool:
    """Whether a carriage return goes back to the begin of the line for whoever looks at it."""
    return stream.isatty() or type(stream).__module__.partition(".")[0] == "ipykernel"


def _write(stream: TextIO, text: str) -> None:
    # A closed terminal is no reason to give up a write.
    with suppress(OSError, ValueError):
        stream.write(text)
        stream.flush()
