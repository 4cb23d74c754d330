"""Writers and sources for worker processes that need no native library. Importable in spawned processes."""

import functools
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataset_rt.processes.messages import Outcome, Write


@dataclass
class FileSource:
    """Becomes a file with its name and process number."""

    def write(self, target: Path) -> None:
        target.write_text(f"{os.getpid()} {os.getppid()}")


@dataclass
class Calls:
    """Calls a function, then becomes a file."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()

    def write(self, target: Path) -> None:
        self.function(*self.arguments)
        FileSource().write(target)


class Unpicklable(FileSource):
    def __reduce__(self) -> Any:
        raise ValueError("holds an open door")


class Unloadable(FileSource):
    def __reduce__(self) -> Any:
        return _fail_to_load, ("no such door",)


def _fail_to_load(text: str) -> None:
    raise ImportError(text)


class RefusedError(Exception):
    """The writer's own kind of failure."""


def write_file(base: Path, name: str, fingerprint: str | None, source: Any) -> Outcome:
    """Stands for the native writer."""
    target = base / name
    try:
        source.write(target)
    except RefusedError as error:
        return str(error)
    return target


def make_writer(base: Path) -> Write:
    return functools.partial(write_file, base)


def writer_fails() -> Write:
    raise RuntimeError("no threads left")


def refuse(text: str) -> None:
    raise RefusedError(text)


def raise_error(error: BaseException) -> None:
    raise error


def kill_self(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(60)


def touch(flag: Path) -> None:
    """Does its work at once."""
    flag.touch()


def announce_and_hang(flag: Path) -> None:
    """Waits for ever, in a way that an interrupt ends."""
    _announce(flag)
    try:
        time.sleep(600)
    finally:
        flag.with_suffix(".interrupted").touch()


def announce_and_finish(flag: Path) -> None:
    """Waits until it is interrupted, and has then done its work."""
    _announce(flag)
    with suppress(KeyboardInterrupt):
        time.sleep(600)


def announce_and_wait(flag: Path, go: Path) -> None:
    """Waits for a file."""
    _announce(flag)
    while not go.exists():
        time.sleep(0.01)


def announce_and_ignore(flag: Path) -> None:
    """Waits for ever, whatever happens."""
    _announce(flag)
    while True:
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            continue


def announce_and_keep_the_interpreter(flag: Path) -> None:
    """Waits for ever in native code that no other thread of the process can run beside."""
    import ctypes

    _announce(flag)
    ctypes.PyDLL(None).sleep(600)


def announce_and_hang_elsewhere(flag: Path) -> None:
    """The same on a system whose kernel does not end processes with their parents."""
    import ctypes

    set_death_signal = 1
    ctypes.CDLL(None).prctl(set_death_signal, 0)
    announce_and_hang(flag)


def _announce(flag: Path) -> None:
    partial = flag.with_suffix(".partial")
    partial.write_text(str(os.getpid()))
    partial.rename(flag)


def close_everything_and_return() -> None:
    """A source that closes what is not its own."""
    os.closerange(3, 256)


def close_everything_and_hang() -> None:
    """The same, and it does not end."""
    os.closerange(3, 256)
    time.sleep(600)


def leave_a_forked_child(pids: Path) -> None:
    """Dies while a process forked from it lives on and keeps its files open."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        time.sleep(600)
        os._exit(0)
    pids.write_text(str(child))
    os._exit(7)


def interrupt_self_from_outside() -> None:
    """What a terminal does to every process of a program."""
    os.kill(os.getpid(), signal.SIGINT)
    sys.stdout.flush()


class LoadsBy(FileSource):
    """Calls a function when it is unpickled."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments

    def __reduce__(self) -> Any:
        return self.function, self.arguments


class Halt(BaseException):
    """A reason to end that is no error."""


class Uncrossable(BaseException):
    """Pickles, and cannot be loaded again."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)


def raise_uncrossable() -> None:
    raise Uncrossable("held", "back")
