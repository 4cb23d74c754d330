"""List what writers that are dead left unfinished beside caches, and remove it with --yes."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dataset_rt._native import find_staging, sweep_staging
from dataset_rt.command_line.output import FAILURES, complain, count, printable, reason, size, tell, tell_json
from dataset_rt.paths import path_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("base", metavar="BASE", help="directory that caches were written into")
    parser.add_argument("--yes", action="store_true", help="remove what is listed")


def run(arguments: argparse.Namespace) -> int:
    """List or remove; give 1 if something cannot be looked at or removed."""
    base = arguments.base
    try:
        if not Path(path_text(base, "BASE")).is_dir():
            raise ValueError(f"{base}: expected a directory that holds caches, found none")
        found = find_staging(base)
    except FAILURES as error:
        complain(reason(error))
        return 1
    dead = [(path, _bytes_below(path)) for path, is_dead in found if is_dead]
    living = [path for path, is_dead in found if not is_dead]
    status = 0
    if arguments.yes:
        try:
            sweep_staging(base)
        except FAILURES as error:
            complain(reason(error))
            status = 1
    removed = [path for path, _ in dead if not path.exists()] if arguments.yes else []
    if arguments.json:
        listed = [{"path": str(path), "bytes": length, "removed": path in removed} for path, length in dead]
        tell_json({"base": base, "dead": listed, "living": [str(path) for path in living]})
    else:
        tell(_for_people(base, dead, living, len(removed), arguments.yes))
    return status


def _bytes_below(directory: Path) -> int:
    """Give the bytes of the files in a directory that may be disappearing."""
    total = 0
    for file in directory.rglob("*"):
        try:
            total += file.lstat().st_size if not file.is_dir() else 0
        except OSError:
            continue
    return total


def _for_people(base: str, dead: Sequence[tuple[Path, int]], living: Sequence[Path], removed: int, yes: bool) -> str:
    lines = [f"{printable(str(path))}: {size(length)}" for path, length in dead]
    if living:
        lines.append(f"{count(len(living), 'caches')} being written, which {'stays' if len(living) == 1 else 'stay'}")
    if not dead:
        lines.append(f"{printable(base)}: nothing to remove")
    elif yes:
        lines.append(f"removed {removed} of {count(len(dead), 'unfinished caches')}")
    else:
        them = "it" if len(dead) == 1 else "them"
        lines.append(f"{count(len(dead), 'unfinished caches')} of dead writers; --yes removes {them}")
    return "\n".join(lines)
