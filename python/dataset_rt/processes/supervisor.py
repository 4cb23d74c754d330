"""Shares sources out among worker processes and watches over these: deadlines, deaths, interrupts."""

import atexit
import multiprocessing.util  # noqa: F401  # its exit handler waits for children; ours, registered later, runs before it
import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from dataset_rt.processes import advice, worker
from dataset_rt.processes.children import Child
from dataset_rt.processes.messages import Done, Failed, Job, Outcome, Raised, Ready, Report, Start, Write

# Longer than what a worker process allows itself.
_STOP_SECONDS = worker.GRACE_SECONDS + 1.0
# The interpreter of a worker process runs the exit handlers of the user's modules.
_FINISH_SECONDS = 10.0
# A worker process whose channel is closed is about to end, or can no longer be used.
_LOST_SECONDS = 5.0
# Exit codes are looked at this often: where children of a worker process live on, nothing else announces its end.
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Task:
    """A source that is to be written by some worker process."""

    position: int
    name: str
    fingerprint: str | None
    source: Any


@dataclass(frozen=True)
class Hooks:
    """What a supervisor calls: time, and those who want to know."""

    clock: Callable[[], float] = time.monotonic
    wait: Callable[[Iterable[Any], float], Sequence[Any]] = connection.wait
    # Gets the number of tasks that have an outcome.
    progress: Callable[[int], None] = lambda _done: None
    # Gets the name of a task and gives its cache, if there is a complete one.
    published: Callable[[str], Path | None] = lambda _name: None
    # Gets the process number of a worker process that may have left something behind.
    clean_up: Callable[[int], None] = lambda _pid: None


class Supervisor:
    """One call: at most `num_processes` worker processes, all of which have ended when `run` returns or raises.

    The first death, or deadline that is missed, stops all of them. No task is tried twice.
    """

    def __init__(
        self,
        make_writer: Callable[[], Write],
        *,
        num_processes: int,
        timeout_seconds: float,
        hooks: Hooks | None = None,
    ) -> None:
        self._start = Start(os.getpid(), str(Path.cwd()), make_writer)
        self._num_processes = num_processes
        self._timeout = timeout_seconds
        self._hooks = hooks or Hooks()
        self._children: list[Child] = []
        self._waiting: deque[Task] = deque()
        self._outcomes: dict[int, Outcome] = {}
        # Positions of tasks whose worker process ended or was stopped before it told what became of them.
        self._cut_short: set[int] = set()
        self._cause: str | None = None
        self._raised: BaseException | None = None

    def run(self, tasks: Sequence[Task]) -> dict[int, Outcome]:
        """Write every task; one outcome for each position.

        Raises:
            BaseException: Equal to what a source raised in a worker process, if that was no `Exception`.
        """
        self._waiting.extend(tasks)
        _running.add(self)
        try:
            self._hand_out()
            while not self._over() and (busy := [child for child in self._children if child.job is not None]):
                self._listen(busy)
                self._hand_out()
        finally:
            try:
                self._end_children()
            finally:
                # Also after an interrupt meanwhile: the end of the interpreter would wait for this call.
                _running.discard(self)
        if self._raised is not None:
            raise self._raised
        for task in tasks:
            if task.position in self._cut_short and (cache := self._hooks.published(task.name)) is not None:
                self._outcomes[task.position] = cache
            elif task.position not in self._outcomes:
                self._outcomes[task.position] = advice.not_run(self._cause or "the call ended early")
        return self._outcomes

    def _over(self) -> bool:
        return self._cause is not None or self._raised is not None

    def _hand_out(self) -> None:
        """Give a job to everybody who is idle, start more processes while there are jobs, and let the others go."""
        while not self._over():
            idle = next((child for child in self._children if child.idle), None)
            if idle is None and len(self._children) >= self._num_processes:
                return
            job = self._next_job()
            if job is not None and idle is not None:
                self._dispatch(idle, job)
            elif job is not None:
                self._add_child(job)
            elif idle is not None:
                idle.finish()
            else:
                return

    def _next_job(self) -> Job | None:
        while self._waiting:
            task = self._waiting.popleft()
            try:
                pickled = bytes(ForkingPickler.dumps(task.source))
            except Exception as error:
                self._settle(task.position, advice.unpicklable(error))
            else:
                return Job(task.position, task.name, task.fingerprint, pickled)
        return None

    def _add_child(self, job: Job) -> None:
        if (reason := advice.main_without_file()) is not None:
            self._fail(job, reason)
            return
        try:
            child = Child(len(self._children) + 1, self._start, self._deadline())
        except OSError as error:
            self._fail(job, advice.cannot_start(error))
        else:
            child.job = job
            self._children.append(child)

    def _dispatch(self, child: Child, job: Job) -> None:
        child.job = job.without_source()
        child.deadline = self._deadline()
        child.send(job)

    def _deadline(self) -> float:
        return self._hooks.clock() + self._timeout

    def _listen(self, busy: list[Child]) -> None:
        patience = min(child.deadline for child in busy) - self._hooks.clock()
        heard = [child.channel for child in busy if not child.lost]
        self._hooks.wait([*heard, *(child.sentinel for child in busy)], min(max(patience, 0.0), _LOOK_SECONDS))
        for child in busy:
            # Asked before its channel is read to the end: nothing comes after that.
            exit_code = child.exit_code
            was_lost = child.lost
            for report in child.reports():
                self._take(child, report)
            if child.job is None:
                continue
            if exit_code is not None:
                self._fail(child.job, advice.ended(child.pid, exit_code, starting=not child.ready))
            elif self._hooks.clock() >= child.deadline:
                late = advice.timed_out(child.pid, self._timeout, starting=not child.ready)
                self._fail(child.job, advice.lost(child.pid) if child.lost else late)
            elif child.lost and not was_lost:
                child.deadline = min(child.deadline, self._hooks.clock() + _LOST_SECONDS)
            if self._over():
                return

    def _take(self, child: Child, report: Report) -> None:
        job = child.job
        match report:
            case Ready():
                child.ready = True
                if job is not None:
                    self._dispatch(child, job)
            case Failed(message):
                if job is not None:
                    self._fail(job, f"worker process {child.pid} cannot work: {message}")
            case Done(position, outcome):
                child.job = None
                self._settle(position, outcome)
            case Raised() if self._raised is None:
                self._raised = report.restored(job.name if job is not None else "", child.pid)

    def _settle(self, position: int, outcome: Outcome) -> None:
        self._outcomes[position] = outcome
        self._hooks.progress(len(self._outcomes))

    def _fail(self, job: Job, message: str) -> None:
        """The worker process that has `job` is of no more use, and with it the whole pool."""
        if self._cause is None:
            self._cause = f"the pool was stopped by source {job.name!r}: {message}"
        self._settle(job.position, message)

    def _end_children(self) -> None:
        """Ask, wait, then kill. An interrupt meanwhile shortens the wait."""
        try:
            for child in self._children:
                child.stop()
            orderly = all(child.finishing for child in self._children)
            limit = self._hooks.clock() + (_FINISH_SECONDS if orderly else _STOP_SECONDS)
            while (
                left := [child for child in self._children if child.exit_code is None]
            ) and self._hooks.clock() < limit:
                heard = [child.channel for child in left if not child.lost]
                self._hooks.wait([*heard, *(child.sentinel for child in left)], _LOOK_SECONDS)
                for child in left:
                    self._take_late(child)
        finally:
            for child in self._children:
                child.kill()
            for child in self._children:
                self._take_late(child)
                if child.ready and child.job is not None:
                    self._cut_short.add(child.job.position)
                child.join()
                if child.exit_code != 0 and child.pid is not None:
                    self._hooks.clean_up(child.pid)
                child.release()

    def _take_late(self, child: Child) -> None:
        """A cache that was published in spite of everything is a success; nothing else counts after the end of the call."""
        for report in child.reports():
            if isinstance(report, Done):
                child.job = None
                if isinstance(report.outcome, Path):
                    self._outcomes[report.position] = report.outcome

    def abandon(self) -> bool:
        """End the call of another thread while the interpreter goes down around it; False for a forked copy of the call."""
        if self._start.parent != os.getpid():
            return False
        self._cause = self._cause or "the interpreter is ending"
        for child in list(self._children):
            # Its own thread may let go of it in this moment.
            with suppress(ValueError):
                child.kill()
        return True


_running: "weakref.WeakSet[Supervisor]" = weakref.WeakSet()


@atexit.register
def _abandon_all() -> None:
    abandoned = [supervisor for supervisor in list(_running) if supervisor.abandon()]
    # The thread of the call lets go of its children before the exit handler of multiprocessing looks at them.
    limit = time.monotonic() + _STOP_SECONDS
    while any(supervisor in _running for supervisor in abandoned) and time.monotonic() < limit:
        time.sleep(0.01)
