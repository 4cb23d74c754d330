"""What crosses between the calling process and its worker processes: jobs one way, outcomes the other, never payloads."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

# A published cache, or why there is none; as the native writer reports it.
Outcome: TypeAlias = Path | str

# Writes one source under a name, with a fingerprint where it has one.
Write: TypeAlias = Callable[[str, str | None, Any], Outcome]


@dataclass(frozen=True, slots=True)
class Start:
    """What a worker process needs before its first job.

    It works in the directory of the caller, whatever its main module does to that while it is imported.
    """

    parent: int
    directory: str
    make_writer: Callable[[], Write]


@dataclass(frozen=True, slots=True)
class Job:
    """One source to write. It stays pickled on the way, so that one that cannot be loaded is the fault of this job only."""

    position: int
    name: str
    fingerprint: str | None
    pickled: bytes

    def without_source(self) -> "Job":
        """What is left to know once the job was sent."""
        return replace(self, pickled=b"")


@dataclass(frozen=True, slots=True)
class Finish:
    """No more jobs: end in good order."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End now; give up what is being written."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker process waits for its first job."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The worker process cannot work at all."""

    message: str


@dataclass(frozen=True, slots=True)
class Done:
    """A job ended, well or not."""

    position: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Raised:
    """A source raised something that is no `Exception`; it ends the whole call. `pickled` is None for what cannot cross."""

    position: int
    pickled: bytes | None
    summary: str
    traceback: str

    def restored(self, name: str, pid: int | None) -> BaseException:
        """An equal exception that says where it comes from."""
        try:
            error = pickle.loads(self.pickled) if self.pickled is not None else None
        except Exception:
            error = None
        if not isinstance(error, BaseException):
            error = RuntimeError(f"source {name!r} ended its worker process with {self.summary}")
        error.add_note(f"raised for source {name!r} in worker process {pid}:\n{self.traceback}")
        return error


Order: TypeAlias = Job | Finish | Stop
Report: TypeAlias = Ready | Failed | Done | Raised
