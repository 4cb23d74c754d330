"""Sources that worker processes can import."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dataset_rt as drt


def announce(flag: Path) -> None:
    """Leave the process number in a file that is never seen empty."""
    if not flag.exists():
        partial = flag.with_suffix(".partial")
        partial.write_text(str(os.getpid()))
        partial.rename(flag)


class Numbered:
    """Rows with payloads of many sizes, and a column of each kind."""

    def __init__(self, name: str, count: int, fingerprint: str | None = None) -> None:
        self.name = name
        self.count = count
        if fingerprint is not None:
            self.fingerprint = fingerprint

    def __iter__(self) -> Iterator[Any]:
        for row in range(self.count):
            payload = f"{self.name} {row} ".encode() * (row * 37 % 500)
            yield payload, {"row": row, "half": row / 2, "even": row % 2 == 0, "name": self.name}


class Renamed(Numbered):
    """Calls itself otherwise in every process."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "name": "somebody else", "fingerprint": "another"}


class Mixed(Numbered):
    """Fails in its second row."""

    def __iter__(self) -> Iterator[Any]:
        yield b"", {"row": 0}
        yield b"", {"row": "one"}


class Moving(Numbered):
    """Makes another directory the working directory before its first row."""

    def __init__(self, name: str, base: str) -> None:
        super().__init__(name, 3)
        self.base = base

    def __iter__(self) -> Iterator[Any]:
        elsewhere = Path(self.base, "elsewhere")
        elsewhere.mkdir(exist_ok=True)
        os.chdir(elsewhere)
        return super().__iter__()


class Failing(Numbered):
    """Raises what it was given after a few rows."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(name, 3)
        self.error = error

    def __iter__(self) -> Iterator[Any]:
        yield from super().__iter__()
        raise self.error


class Forking(Numbered):
    """One row that says how a child ended which it forked and which went out of the source."""

    def __init__(self, name: str, exception: BaseException) -> None:
        super().__init__(name, 1)
        self.exception = exception

    def __iter__(self) -> Iterator[Any]:
        child = os.fork()
        if child == 0:
            # A child that hangs is ended by its alarm.
            signal.alarm(30)
            raise self.exception
        yield b"", {"status": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}


class Dying(Numbered):
    """Ends its process once another source writes."""

    def __init__(self, name: str, after: Path, code: int) -> None:
        super().__init__(name, 3)
        self.after = after
        self.code = code

    def __iter__(self) -> Iterator[Any]:
        while not self.after.exists():
            time.sleep(0.01)
        os._exit(self.code)
        yield


class Endless(Numbered):
    """Writes for ever, and touches a file once its staging directory is there."""

    def __init__(self, name: str, base: Path) -> None:
        super().__init__(name, 0)
        self.base = base

    def __iter__(self) -> Iterator[Any]:
        row = 0
        while True:
            yield bytes(1 << 20), {"row": row}
            row += 1
            if list((self.base / "tmp").glob(f"*~{os.getpid()}~*")):
                announce(self.base / f"{self.name}.writing")
                time.sleep(0.01)


class Stubborn(Endless):
    """The same, and nothing stops it."""

    def __iter__(self) -> Iterator[Any]:
        yield bytes(1 << 20), {"row": 0}
        while not list((self.base / "tmp").glob(f"*~{os.getpid()}~*")):
            time.sleep(0.01)
        announce(self.base / f"{self.name}.writing")
        while True:
            try:
                time.sleep(600)
            except KeyboardInterrupt:
                continue


class Introspecting(Numbered):
    """One row about the process that writes it."""

    def __init__(self, name: str) -> None:
        super().__init__(name, 1)

    def __iter__(self) -> Iterator[Any]:
        names = [task.joinpath("comm").read_text() for task in Path("/proc/self/task").iterdir()]
        yield b"", {"parent": os.getppid(), "threads": sum(name.startswith("drt-worker") for name in names)}


class Overtaken(Numbered):
    """Somebody else publishes its cache while it is written."""

    def __init__(self, name: str, base: Path) -> None:
        super().__init__(name, 3)
        self.base = base

    def __iter__(self) -> Iterator[Any]:
        yield from super().__iter__()
        with drt.DatasetRuntime(num_workers=1) as runtime:
            config = drt.WriterConfig(show_progress=False)
            [result] = runtime.write_cache(Numbered(self.name, 5), self.base, writer_config=config)
        assert isinstance(result, drt.CacheWriteSuccess)


class Killed(Numbered):
    """Kills its process or the parent of that, the first time: at a row (its count stands for the end), or later, as soon
    as a file of its cache can be seen.
    """

    def __init__(self, name: str, count: int, base: Path, victim: str, at: int | str, delay: float) -> None:
        super().__init__(name, count)
        self.base = base
        self.victim = victim
        self.at = at
        self.delay = delay

    def __iter__(self) -> Iterator[Any]:
        flag = self.base / f"{self.name}.flag"
        first_time = not flag.exists()
        flag.touch()
        for row, sample in enumerate(super().__iter__()):
            # A slow source is handed over row by row, so the files grow with it.
            busy_for(0.0003)
            if first_time and row == self.at:
                self._kill()
            yield sample
        if first_time and self.at == self.count:
            self._kill()
        if first_time and isinstance(self.at, str):
            threading.Thread(target=self._kill_later, args=(self.at,), daemon=True).start()

    def _kill(self) -> None:
        busy_for(self.delay)
        os.kill(os.getpid() if self.victim == "child" else os.getppid(), signal.SIGKILL)

    def _kill_later(self, file: str) -> None:
        staging = self.base / "tmp"
        while not ((self.base / self.name).exists() or list(staging.glob(f"*~{os.getpid()}~*/{file}"))):
            pass
        self._kill()


def busy_for(seconds: float) -> None:
    """Let some time pass, exactly."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


class PublishedAndLost(Overtaken):
    """Its cache is there, and its process is gone before it could tell."""

    def __iter__(self) -> Iterator[Any]:
        yield from super().__iter__()
        os._exit(3)
