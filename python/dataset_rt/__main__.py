"""`python -m dataset_rt`: look at caches from a shell."""

import sys


def main() -> int:
    """Run the command line of this process; give its exit status."""
    try:
        # Importing takes a while, and may be interrupted like anything else.
        from dataset_rt.command_line.program import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        # As a shell tells a program that ended by this signal.
        return 130


if __name__ == "__main__":
    sys.exit(main())
