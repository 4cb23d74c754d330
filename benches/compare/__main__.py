"""Measures every line with all its candidates in turns and prints and saves the table.

python -m compare [--quick] [--rounds N] [--lines LINE ...] [--sets LETTERS] [--candidates NAME ...] [--memory DIR] [--disk DIR]
"""

import argparse
import json
import platform
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import dataset_rt
from compare.candidates import ENTRIES, PEERS
from compare.environments import ROOT, TARGET, Environments
from compare.lines import LINES
from compare.rounds import Rounds
from compare.sizes import QUICK, SIZES
from compare.table import Row, details, summary


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(prog="python -m compare", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer samples and shorter measurements: minutes")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of everything (default: 5)")
    parser.add_argument("--lines", nargs="+", metavar="LINE", help="only these lines: write 'in order'")
    parser.add_argument("--sets", default="ABCETF-", help="only these sets: 'AB'")
    parser.add_argument("--candidates", nargs="+", metavar="NAME", help="ours and only these others: native lmdb")
    parser.add_argument(
        "--memory", type=Path, default=Path("/dev/shm"), help="a memory file system (default: /dev/shm)"
    )
    parser.add_argument("--disk", type=Path, default=TARGET, help="a directory on a disk (default: target/compare)")
    arguments = parser.parse_args()

    lines = [line for line in LINES if arguments.lines is None or line.name in arguments.lines]
    names = [name for name in ENTRIES if any(name in line.candidates for line in lines)]
    if arguments.candidates is not None:
        names = [name for name in names if name in ("ours", *arguments.candidates)]
    TARGET.mkdir(parents=True, exist_ok=True)
    environments = Environments(names)
    sizes = QUICK if arguments.quick else SIZES
    started = time.monotonic()
    places = {
        "memory": Path(tempfile.mkdtemp(prefix="dataset-rt-compare-", dir=arguments.memory)),
        "disk": Path(tempfile.mkdtemp(prefix="dataset-rt-compare-", dir=arguments.disk)),
    }
    rounds = Rounds(environments, names, places, rounds=arguments.rounds, budget=0.08 if arguments.quick else 0.5)
    # What was measured until somebody had enough is told all the same.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for place in places:
            for name in sizes:
                chosen = [
                    line for line in lines if line.place == place and name in line.goals and name[0] in arguments.sets
                ]
                further = {line.beside: sizes[line.beside].count for line in chosen if line.beside}
                rounds.measure(name, sizes[name].count, chosen, further)
    except KeyboardInterrupt:
        print("stopped")
    finally:
        rounds.end()
        for place in places.values():
            shutil.rmtree(place)

    versions = ", ".join(f"{name} {version}" for name, version in environments.versions().items())
    report(
        f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, Python {platform.python_version()}, {arguments.rounds} rounds"
        f"{', quick' if arguments.quick else ''}, {time.monotonic() - started:.0f} s. dataset-rt {dataset_rt.__version__}; {versions}.",
        rounds.rows,
    )


def report(head: str, rows: Sequence[Row]) -> None:
    """Prints the table, and leaves it, that of all candidates and all figures in files."""
    stamp = TARGET / time.strftime("%Y-%m-%d-%H%M%S")
    text = f"{head}\n\n{summary(rows, PEERS)}\n"
    print("\n" + text)
    stamp.with_suffix(".md").write_text(f"{text}\n{details(rows)}\n")
    figures = [
        {"line": row.line.name, "set": row.set_name, "figures": row.figures, "missing": row.missing} for row in rows
    ]
    stamp.with_suffix(".json").write_text(json.dumps({"head": head, "rows": figures}, indent=1) + "\n")
    print(f"all candidates: {stamp.relative_to(ROOT)}.md, all figures: the same with .json")


if __name__ == "__main__":
    main()
