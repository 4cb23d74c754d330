"""The program as a whole: its arguments, its exit status, and what ends it early."""

import argparse
import io
import os
import sys
from collections.abc import Sequence

from dataset_rt._native import __version__
from dataset_rt.command_line import clean, head, info, verify

EXIT_STATUS = """\
exit status:
  0    everything is in order
  1    something is damaged, missing or could not be done; standard error says what
  2    the arguments are wrong
  130  interrupted by Ctrl-C
  141  whoever read the output went away

With --json the output is one JSON object a line, with the keys that docs/guides/command-line.md lists.
"""


def run(arguments: Sequence[str]) -> int:
    """Run one command; give the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # File names may be any bytes, and the encoding of the terminal any at all.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            parsed = _parser().parse_args(arguments)
            status: int = parsed.run(parsed)
        finally:
            # Also the help, behind which the parser raises.
            sys.stdout.flush()
    except BrokenPipeError:
        # Nothing is left to be written, also not by the interpreter when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dataset_rt",
        description="Look at caches, verify them, and clean up behind writers that were killed.",
        epilog=EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dataset_rt {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (info, verify, head, clean):
        summary = (command.__doc__ or "").splitlines()[0]
        name = command.__name__.rpartition(".")[2]
        own = commands.add_parser(name, help=summary[0].lower() + summary[1:].rstrip("."), description=summary)
        own.add_argument("--json", action="store_true", help="write one JSON object a line instead of text")
        command.add_arguments(own)
        own.set_defaults(run=command.run)
    return parser
