"""A worker process: makes its own writer, then writes the sources it is sent, one at a time, until told to end."""

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from dataset_rt.processes import advice
from dataset_rt.processes.messages import Done, Failed, Finish, Job, Raised, Ready, Report, Start, Stop, Write

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

# Time to give up a source and remove what it left, before the process ends without that.
GRACE_SECONDS = 2.0

# How often the parent's existence is looked at. A process forked by the parent may keep its end of the channel open.
_LOOK_SECONDS = 1.0


class Stopped(KeyboardInterrupt):
    """The parent stopped this process, or is gone."""


class StopSwitch:
    """Turns a stop that another thread asks for into `Stopped` in the main thread, at most once and only while armed.

    A Ctrl-C at the terminal reaches every process of the program. Whether it stops anything is for the parent to say:
    here the signal does nothing unless the parent has asked.
    """

    def __init__(self) -> None:
        # Nobody asked: the parent cannot be heard any more.
        self.lost: bool = False
        self._requested = False
        self._armed = False

    def install(self) -> None:
        """Take over SIGINT, which the parent holds back until here."""
        signal.signal(signal.SIGINT, self._on_signal)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def arm(self) -> None:
        """From here on `Stopped` may come at any moment."""
        self._armed = True
        self._on_signal(signal.SIGINT, None)

    def disarm(self) -> None:
        """No `Stopped` from here on."""
        self._armed = False

    def request(self, *, lost: bool) -> None:
        """Stop the main thread, also out of a blocking system call."""
        self.lost = lost
        self._requested = True
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def _on_signal(self, _number: int, _frame: Any) -> None:
        if self._requested and self._armed:
            self._armed = False
            raise Stopped


def run(channel: "Connection", start: Start) -> None:
    """Serve the parent at the other end of `channel`. The target of a spawned process."""
    switch = StopSwitch()
    switch.install()
    _end_with_parent()
    inbox: SimpleQueue[Job | None] = SimpleQueue()
    threading.Thread(target=_watch, args=(channel, inbox, switch, start.parent), daemon=True).start()
    try:
        try:
            switch.arm()
            _serve(channel, inbox, start)
        finally:
            switch.disarm()
    except Stopped:
        if switch.lost:
            raise SystemExit(advice.LOST_CHANNEL) from None
    except OSError:
        raise SystemExit(advice.LOST_CHANNEL) from None


def _serve(channel: "Connection", inbox: "SimpleQueue[Job | None]", start: Start) -> None:
    try:
        os.chdir(start.directory)
        write = start.make_writer()
    except Exception as error:
        channel.send(Failed(advice.summary(error)))
        return
    channel.send(Ready())
    while (job := inbox.get()) is not None:
        channel.send(_carry_out(write, job))


def _carry_out(write: Write, job: Job) -> Report:
    process = os.getpid()
    try:
        try:
            source = pickle.loads(job.pickled)
        except Exception as error:
            return Done(job.position, advice.unloadable(error))
        try:
            return Done(job.position, write(job.name, job.fingerprint, source))
        except Exception as error:
            if os.getpid() != process:
                raise
            return Done(job.position, advice.summary(error))
    except Stopped:
        raise
    except BaseException as error:
        if os.getpid() != process:
            # A child that the source forked and that came back from it: the channel is its parent's.
            raise
        return Raised(job.position, _portable(error), advice.summary(error), traceback.format_exc())


def _portable(error: BaseException) -> bytes | None:
    """The exception as bytes that give it back, if there are such."""
    try:
        pickled = pickle.dumps(error)
        return pickled if type(pickle.loads(pickled)) is type(error) else None
    except Exception:
        return None


def _watch(channel: "Connection", inbox: "SimpleQueue[Job | None]", switch: StopSwitch, parent: int) -> None:
    """Receive orders beside the main thread, which may be busy for hours, and notice the end of the parent."""
    lost = True
    try:
        while lost:
            while not channel.poll(_LOOK_SECONDS):
                if os.getppid() != parent:
                    raise EOFError
            order = channel.recv()
            if isinstance(order, Stop):
                lost = False
            else:
                inbox.put(None if isinstance(order, Finish) else order)
    except Exception:  # whatever closes this ear, the process must not live on
        pass
    switch.request(lost=lost)
    # For a source that turned the stop into an error of its own.
    inbox.put(None)
    time.sleep(GRACE_SECONDS)
    os._exit(advice.LOST_CHANNEL if lost else 1)


def _end_with_parent() -> None:
    """Let the kernel kill this process with its parent: the watching thread cannot run while a source keeps the interpreter.

    The kernel's parent is the thread that started this process. It stays in the supervisor until this process has ended.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        import ctypes

        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
    except (ImportError, OSError, AttributeError):
        return
