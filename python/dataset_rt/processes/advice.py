"""The words for what goes wrong with worker processes: what happened, and what to do about it."""

import signal
import sys
from pathlib import Path

# How a worker process ends whose main module asks for worker processes while it is imported.
NO_MAIN_GUARD = 86
# How it ends when it can no longer hear its parent, who is still there.
LOST_CHANNEL = 87

MAIN_GUARD = (
    "a worker process imports the main module again, so statements that start work belong under "
    '`if __name__ == "__main__":`'
)

# Characters of an exception's text that a message keeps.
_MAX_TEXT = 2000

_OF_START = f"its error output is on stderr; {MAIN_GUARD}"

_BY_SIGNAL = {
    "SIGKILL": "it may have run out of memory: use fewer processes or smaller samples",
    "SIGSEGV": "native code used by the source crashed: run it with num_processes=0 and `python -X faulthandler`",
    "SIGBUS": "native code used by the source crashed, or a disk or /dev/shm is full",
    "SIGABRT": "native code used by the source gave up; its own message is on stderr",
}


def unpicklable(error: Exception) -> str:
    """The source cannot be sent to a worker process."""
    return (
        f"source cannot be pickled for a worker process: {summary(error)}; define its class at the top level of a module "
        "and open files, locks, generators and connections in __iter__, or use num_processes=0"
    )


def unloadable(error: Exception) -> str:
    """The source reached a worker process and cannot be made there."""
    return (
        f"source cannot be loaded in a worker process: {summary(error)}; its class and everything it holds must be "
        "importable there (classes of a notebook or of `python -c` are not), or use num_processes=0"
    )


def timed_out(pid: int | None, seconds: float, *, starting: bool) -> str:
    """A worker process took too long."""
    if starting:
        return f"worker process {pid} was not ready after process_timeout_seconds={seconds:g}; {_OF_START}"
    return (
        f"worker process {pid} had no result after process_timeout_seconds={seconds:g}; "
        "allow more time, or find out what the source waits for"
    )


def lost(pid: int | None) -> str:
    """A worker process lives on but can no longer be heard."""
    return f"worker process {pid} cannot be heard any more; the source or a library it uses closes files that are not its own"


def main_without_file() -> str | None:
    """Why no worker process can import the main module, if none can: a program that came through standard input."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if file is None or getattr(main, "__spec__", None) is not None or Path(file).is_file():
        return None
    return f"no worker process can import the main module, because {file} is no file; run the program from a file"


def cannot_start(error: OSError) -> str:
    """The system refused another process."""
    return f"cannot start a worker process: {error}; use fewer processes"


def ended(pid: int | None, exit_code: int, *, starting: bool) -> str:
    """A worker process ended that should not have."""
    if starting and exit_code == NO_MAIN_GUARD:
        return f"worker process {pid} found no main guard: {MAIN_GUARD}"
    if exit_code == LOST_CHANNEL:
        return lost(pid)
    moment = "before it was ready" if starting else "while it wrote a source"
    if exit_code < 0:
        name = _signal_name(-exit_code)
        advice = _BY_SIGNAL.get(name, "somebody or something outside this library sent it")
        return f"worker process {pid} was killed by signal {-exit_code} ({name}) {moment}; {advice}"
    advice = _OF_START if starting else "the source or a library it uses ends the process, os._exit for example"
    return f"worker process {pid} ended with exit code {exit_code} {moment}; {advice}"


def not_run(cause: str) -> str:
    """A source whose turn did not come, or was not over, when another one stopped the pool."""
    return f"not run: {cause}"


def summary(error: BaseException) -> str:
    """Type and text of an exception, as far as a message can keep it; the text is made by code of the user."""
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be made)"
    if len(text) > _MAX_TEXT:
        text = f"{text[:_MAX_TEXT]}... ({len(text)} characters)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unnamed"
