"""Verify every checksum of caches, and name what is damaged."""

import argparse
from pathlib import Path

from dataset_rt._native import Runtime
from dataset_rt.command_line.output import FAILURES, caches, complain, printable, reason, tell, tell_json
from dataset_rt.torch.resources import affinity

_MOST_THREADS = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="directory of a cache")
    parser.add_argument(
        "--num-workers", type=int, default=_processors(), metavar="N", help="native threads (default: all processors)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Verify each path, whatever became of the others; give 1 if one is damaged or cannot be read."""
    try:
        runtime = Runtime(arguments.num_workers)
    except FAILURES as error:
        complain(reason(error))
        return 2 if isinstance(error, ValueError) else 1
    paths = list(caches(arguments.paths))
    damaged = 0
    for number, path in enumerate(paths, 1):
        damage = None
        try:
            runtime.verify(path, f"[{number}/{len(paths)}] {Path(path).name}")
        except FAILURES as error:
            damage = reason(error)
            damaged += 1
            complain(damage)
        if arguments.json:
            tell_json({"path": path, "ok": damage is None, "error": damage})
        else:
            tell(f"{printable(path)}: {'ok' if damage is None else 'not ok'}")
    return 1 if damaged else 0


def _processors() -> int:
    """Give the number of processors that this process may use, as far as threads go."""
    return min(len(affinity() or (0,)), _MOST_THREADS)
