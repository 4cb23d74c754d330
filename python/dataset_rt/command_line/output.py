"""What commands write: results to standard output, errors to standard error, as text for people or as JSON lines."""

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

# What may go wrong with a cache: the exceptions that the library documents.
FAILURES = (OSError, ValueError, RuntimeError, MemoryError)

# The directory beside caches in which they are made.
STAGING_DIR = "tmp"


def tell(text: str) -> None:
    """Write one result for people; at once, since the next one may take long."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def tell_json(result: Mapping[str, object]) -> None:
    """Write one result for programs."""
    sys.stdout.write(json.dumps(result, allow_nan=False) + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    """Write an error."""
    sys.stderr.write(f"error: {printable(text)}\n")


def reason(error: Exception) -> str:
    """Say what went wrong, without numbers of errors and quotes around names."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def caches(paths: Sequence[str]) -> Iterator[str]:
    """Give the paths, without the `tmp` that `caches/*` names beside the caches."""
    for path in paths:
        place = Path(path)
        if len(paths) > 1 and place.name == STAGING_DIR and place.is_dir() and not (place / "manifest.json").exists():
            sys.stderr.write(f"{printable(path)}: passed over, unfinished caches lie there\n")
        else:
            yield path


def printable(text: str) -> str:
    """Replace what a terminal would not show, or take for a command."""
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def count(number: int, things: str) -> str:
    """Write a number of things, the name of which is that of many: `count(1, "rows")` is `1 row`."""
    return f"{number:,} {things[:-1] if number == 1 else things}"


def size(number: int) -> str:
    """Write a number of bytes: exactly, and from 10 kB on also as people say it."""
    exact = count(number, "bytes")
    if number < 10_000:
        return exact
    step = min((len(str(number)) - 1) // 3, 5)
    return f"{number / 1000**step:.1f} {('', 'kB', 'MB', 'GB', 'TB', 'PB')[step]} ({exact})"


def plain(value: object) -> object:
    """Give a metadata value as JSON can hold it: floats that are no numbers become their names."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value
