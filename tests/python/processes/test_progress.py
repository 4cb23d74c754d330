"""What a person sees while worker processes write."""

import io
from typing import TYPE_CHECKING

import pytest

from dataset_rt.processes.progress import progress_line

if TYPE_CHECKING:
    from collections.abc import Iterator


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Notebook(io.StringIO):
    """Stands for the stream class of a notebook kernel, which is known by its module."""

    __module__ = "ipykernel.iostream"


@pytest.mark.parametrize("stream", [Terminal(), Notebook()])
def test_c12_one_line_is_updated_and_ended(stream: io.StringIO) -> None:
    times: Iterator[float] = iter([100.0, 160.0, 280.0])
    with progress_line(5, 2, show=True, stream=stream, clock=lambda: next(times)) as show:
        show(1)
        show(2)
        show(3)
    shown = stream.getvalue()
    assert shown.endswith("\n")
    assert shown.count("\n") == 1
    assert [line.rstrip() for line in shown.rstrip("\n").split("\r")] == [
        "",
        "[2/5] sources",
        "[3/5] sources, ETA 0:02:00",
        "[4/5] sources, ETA 0:01:30",
        "[5/5] sources",
    ]
    # A shorter line hides the longer one before it.
    assert len(shown.split("\r")[-1].rstrip("\n")) >= len("[4/5] sources, ETA 0:01:30")


@pytest.mark.parametrize(("stream", "wanted"), [(io.StringIO(), True), (Terminal(), False)])
def test_c12_nothing_is_shown_when_redirected_or_unwanted(stream: io.StringIO, wanted: bool) -> None:
    with progress_line(2, 0, show=wanted, stream=stream) as show:
        show(1)
    assert stream.getvalue() == ""


def test_c12_a_terminal_that_is_gone_disturbs_nothing() -> None:
    stream = Terminal()
    with progress_line(2, 0, show=True, stream=stream) as show:
        stream.close()
        show(1)


def test_c12_line_ends_also_after_an_error() -> None:
    stream = Terminal()
    with pytest.raises(KeyError), progress_line(2, 0, show=True, stream=stream):
        raise KeyError
    assert stream.getvalue() == "\r[0/2] sources\n"
