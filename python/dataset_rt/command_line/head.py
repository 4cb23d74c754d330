"""Show the first samples of a cache as a table."""

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dataset_rt._native import CacheSummary
from dataset_rt.command_line.output import FAILURES, complain, plain, printable, reason, tell, tell_json

if TYPE_CHECKING:
    from dataset_rt.api import CachedSample

# Characters of a value, and bytes of a payload, that the table shows.
_SHOWN_CHARACTERS = 40
_SHOWN_BYTES = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("path", metavar="PATH", help="directory of a cache")
    parser.add_argument("-n", "--rows", type=_rows, default=10, metavar="N", help="how many samples (default: 10)")


def run(arguments: argparse.Namespace) -> int:
    """Show the first samples that can be read; give 1 if one cannot."""
    try:
        summary = CacheSummary(arguments.path)
    except FAILURES as error:
        complain(reason(error))
        return 1
    columns = sorted(name for name, _ in summary.schema)
    damaged = 0
    cells = [["sample_id", "bytes", *map(_shown, columns), "data"]]
    for sample in _first(arguments.path, min(arguments.rows, summary.rows)):
        if isinstance(sample, Exception):
            damaged += 1
            complain(reason(sample))
        elif arguments.json:
            tell_json(_for_programs(arguments.path, sample))
        else:
            values = [_shown(str(sample.metadata[name])) for name in columns]
            cells.append([str(sample.sample_id), f"{len(sample.data):,}", *values, _payload(sample.data)])
    if not arguments.json:
        tell("\n".join(_aligned(cells)))
    return 1 if damaged else 0


def _rows(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a number of rows, 1 or more, found {text!r}")
    return int(text)


def _first(path: str, rows: int) -> Iterator["CachedSample | Exception"]:
    """Give the first samples in order, and an exception in the place of one that cannot be read."""
    if rows == 0:
        return
    # What the other commands never need: pydantic, and all it imports.
    from dataset_rt.api import DatasetRuntime, ReaderConfig

    try:
        with DatasetRuntime(num_workers=1) as runtime:
            dataset = runtime.cached_dataset([path], reader_config=ReaderConfig(seed=0, shuffle=False))
            dataset.set_epoch_len(rows)
            samples = iter(dataset)
    except FAILURES as error:
        yield error
        return
    while True:
        try:
            yield next(samples)
        except StopIteration:
            return
        except FAILURES as error:
            yield error


def _for_programs(path: str, sample: "CachedSample") -> dict[str, object]:
    return {
        "path": path,
        "cache_id": sample.cache_id,
        "sample_id": sample.sample_id,
        "bytes": len(sample.data),
        "metadata": {name: plain(value) for name, value in sample.metadata.items()},
    }


def _shown(text: str) -> str:
    return printable(text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 3]}...")


def _payload(data: bytes) -> str:
    """Write the beginning of a payload: as text where it is some, otherwise in hexadecimal digits."""
    start = data[:_SHOWN_BYTES]
    more = "..." if len(data) > len(start) else ""
    text = start.decode("ascii", "replace")
    return f'"{text}"{more}' if text.isascii() and text.isprintable() else start.hex(" ") + more


def _aligned(cells: Sequence[Sequence[str]]) -> Iterator[str]:
    """Put cells below each other."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
