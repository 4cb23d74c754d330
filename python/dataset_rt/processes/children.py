"""One worker process as its parent sees it: start, send, hear, end."""

import multiprocessing
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

from dataset_rt.processes import advice, worker
from dataset_rt.processes.messages import Finish, Job, Order, Report, Start, Stop

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_SPAWN = multiprocessing.get_context("spawn")

_NAME = "dataset_rt-writer-"


def leave_if_importing_main() -> None:
    """End a worker process whose main module, while it is imported again, asks for worker processes itself.

    The parent sees the exit code and says what is missing. The general error of `multiprocessing` would come as one
    traceback from every worker process.
    """
    process = multiprocessing.current_process()
    if getattr(process, "_inheriting", False) and process.name.startswith(_NAME):
        raise SystemExit(advice.NO_MAIN_GUARD)


def refuse_in_daemon() -> None:
    """Processes that end with their parent in the manner of `multiprocessing` may have no children."""
    if multiprocessing.current_process().daemon:
        raise RuntimeError(
            "num_processes > 0 is not possible in a daemonic process, which may not start others; "
            "use num_processes=0 here or start this process with daemon=False"
        )


class Child:
    """A spawned worker process. It is told to end, or killed, before its parent lets go of it."""

    def __init__(self, number: int, start: Start, deadline: float) -> None:
        self.job: Job | None = None
        self.ready = False
        self.finishing: bool = False
        self.lost: bool = False
        self.deadline = deadline
        self._sender: threading.Thread | None = None
        self._exit_code: int | None = None
        self.channel: Connection
        self.channel, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=worker.run, args=(theirs, start), name=f"{_NAME}{number}", daemon=False)
        try:
            with _interrupts_held_back():
                self._process.start()
        except BaseException:
            self.channel.close()
            if self._process.pid is not None:
                self._process.kill()
                self._process.join()
            raise
        finally:
            theirs.close()

    @property
    def idle(self) -> bool:
        """Whether it waits for a job."""
        return self.ready and self.job is None and not self.finishing

    @property
    def pid(self) -> int | None:
        """Process number."""
        return self._process.pid

    @property
    def sentinel(self) -> int:
        """Becomes readable when the process ends, unless a process forked from it lives on."""
        return self._process.sentinel

    @property
    def exit_code(self) -> int | None:
        """None while the process runs; the signal as a negative number when one killed it."""
        if self._exit_code is None:
            self._exit_code = self._process.exitcode
        return self._exit_code

    def send(self, order: Order) -> None:
        """Send without waiting: a large job does not fit into the channel, and its receiver may be stuck."""
        self._sender = threading.Thread(target=self._send, args=(order,), daemon=True)
        self._sender.start()

    def _send(self, order: Order) -> None:
        try:
            self.channel.send(order)
        except OSError:
            # The process is gone, which its exit code tells better.
            return

    def reports(self) -> Iterator[Report]:
        """What has come from the process so far."""
        try:
            while not self.lost and self.channel.poll():
                yield self.channel.recv()
        except (EOFError, OSError):
            self.lost = True

    def finish(self) -> None:
        """Let the process end in good order."""
        self.finishing = True
        self.send(Finish())

    def stop(self) -> None:
        """Let the process give up what it does, and end."""
        if self.finishing or self.exit_code is not None:
            return
        if not self.ready or (self._sender is not None and self._sender.is_alive()):
            # Nobody listens yet, or not to the end; neither has begun to write.
            self._process.terminate()
        else:
            self.send(Stop())

    def kill(self) -> None:
        """Kill the process if it still runs."""
        if self.exit_code is None:
            self._process.kill()

    def join(self) -> None:
        """Wait for the process, which ends or was killed, and for what is being sent to it."""
        if self.exit_code is None:
            self._process.join()
        if self._sender is not None:
            self._sender.join()

    def release(self) -> None:
        """Give back what is left of an ended process."""
        self.channel.close()
        self._process.close()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Processes started meanwhile begin with SIGINT blocked, and cannot be torn by a Ctrl-C while they import modules."""
    # Starting the tracker unblocks SIGINT at its end, so it has to run before.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
