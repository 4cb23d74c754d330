"""The supervisor over real spawned processes that write with a fake: outcomes, deaths, deadlines, stops."""

import functools
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from processes import fakes
from processes.watching import alive, wait_for

from dataset_rt.processes import supervisor as supervisor_module
from dataset_rt.processes.messages import Outcome
from dataset_rt.processes.supervisor import Hooks, Supervisor, Task


def supervisor(
    base: Path, *, num_processes: int = 2, timeout_seconds: float = 60, hooks: Hooks | None = None
) -> Supervisor:
    writer = functools.partial(fakes.make_writer, base)
    return Supervisor(writer, num_processes=num_processes, timeout_seconds=timeout_seconds, hooks=hooks)


def tasks(*sources: Any) -> list[Task]:
    return [Task(position, f"s{position}", None, source) for position, source in enumerate(sources)]


def write(base: Path, *sources: Any, **settings: Any) -> list[Outcome]:
    outcomes = supervisor(base, **settings).run(tasks(*sources))
    assert sorted(outcomes) == list(range(len(sources)))
    return [outcomes[position] for position in range(len(sources))]


def message(outcome: Outcome) -> str:
    assert isinstance(outcome, str)
    return outcome


@pytest.fixture(autouse=True)
def _nothing_is_left_running() -> Iterator[None]:
    files = set(Path("/proc/self/fd").iterdir())
    yield
    assert multiprocessing.active_children() == []
    assert not [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    # The tracker of multiprocessing starts once in a program and keeps one file.
    assert len(set(Path("/proc/self/fd").iterdir()) - files) <= 1


def test_c11_each_source_is_written_by_one_of_few_children(tmp_path: Path) -> None:
    outcomes = write(tmp_path, *[fakes.FileSource()] * 5, num_processes=2)

    assert outcomes == [tmp_path / f"s{number}" for number in range(5)]
    written = [(tmp_path / f"s{number}").read_text().split() for number in range(5)]
    assert {parent for _, parent in written} == {str(os.getpid())}
    assert 1 <= len({pid for pid, _ in written} - {str(os.getpid())}) <= 2


def test_c11_no_more_processes_than_sources(tmp_path: Path) -> None:
    assert write(tmp_path, fakes.FileSource(), num_processes=2**62) == [tmp_path / "s0"]
    assert write(tmp_path, num_processes=3) == []


def test_c11_children_work_in_the_directory_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert write(Path(), fakes.FileSource()) == [Path("s0")]
    assert (tmp_path / "s0").exists()


def test_c11_a_failing_source_disturbs_no_other(tmp_path: Path) -> None:
    bad = fakes.Calls(fakes.refuse, ("no rows",))
    broken = fakes.Calls(fakes.raise_error, (LookupError("odd"),))
    outcomes = write(tmp_path, bad, fakes.FileSource(), broken, fakes.FileSource())
    assert outcomes == ["no rows", tmp_path / "s1", "LookupError: odd", tmp_path / "s3"]


def test_c11_unpicklable_source_is_reported_for_itself(tmp_path: Path) -> None:
    outcomes = write(tmp_path, fakes.FileSource(), fakes.Unpicklable(), lambda: None, fakes.FileSource())
    assert "cannot be pickled" in message(outcomes[1])
    assert "ValueError: holds an open door" in message(outcomes[1])
    assert "cannot be pickled" in message(outcomes[2])
    assert (outcomes[0], outcomes[3]) == (tmp_path / "s0", tmp_path / "s3")


def test_c11_no_process_is_started_for_unpicklable_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataset_rt.processes.supervisor.Child", None)
    assert "cannot be pickled" in message(write(tmp_path, fakes.Unpicklable())[0])


def test_c11_source_that_cannot_be_loaded_is_reported_for_itself(tmp_path: Path) -> None:
    outcomes = write(tmp_path, fakes.Unloadable(), fakes.FileSource(), num_processes=1)
    assert "cannot be loaded in a worker process: ImportError: no such door" in message(outcomes[0])
    assert outcomes[1] == tmp_path / "s1"


def test_c11_large_sources_cross_whole(tmp_path: Path) -> None:
    large = fakes.Calls(len, (b"x" * (8 << 20),))
    assert write(tmp_path, large, large) == [tmp_path / "s0", tmp_path / "s1"]


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (os._exit, (3,), "ended with exit code 3 while it wrote a source"),
        (
            fakes.kill_self,
            (signal.SIGKILL,),
            "was killed by signal 9 (SIGKILL) while it wrote a source; it may have run out",
        ),
        (fakes.kill_self, (signal.SIGTERM,), "was killed by signal 15 (SIGTERM)"),
    ],
)
def test_c11_death_stops_the_pool(tmp_path: Path, function: Any, arguments: Any, expected: str) -> None:
    flag = tmp_path / "flag"
    hang = fakes.Calls(fakes.announce_and_hang, (flag,))
    die = fakes.Calls(_after, (flag, function, *arguments))
    outcomes = write(tmp_path, hang, die, fakes.FileSource())

    assert expected in message(outcomes[1])
    assert message(outcomes[0]).startswith("not run: ")
    assert message(outcomes[2]).startswith("not run: ")
    for other in (0, 2):
        assert "'s1'" in message(outcomes[other])
        assert expected in message(outcomes[other])
    # The other child was asked, not killed, and none was started for the third.
    assert flag.with_suffix(".interrupted").exists()
    assert not alive(int(flag.read_text()))
    assert not (tmp_path / "s2").exists()


def _after(flag: Path, function: Any, *arguments: Any) -> None:
    wait_for(flag.exists)
    function(*arguments)


def test_c11_outcomes_before_a_death_stay(tmp_path: Path) -> None:
    outcomes = write(tmp_path, fakes.FileSource(), fakes.Calls(os._exit, (0,)), fakes.FileSource(), num_processes=1)
    assert outcomes[0] == tmp_path / "s0"
    assert "ended with exit code 0" in message(outcomes[1])
    assert message(outcomes[2]).startswith("not run: ")


def test_c11_success_while_the_pool_is_stopped_counts(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    finish = fakes.Calls(fakes.announce_and_finish, (flag,))
    outcomes = write(tmp_path, finish, fakes.Calls(_after, (flag, os._exit, 1)))
    assert outcomes[0] == tmp_path / "s0"
    assert "ended with exit code 1" in message(outcomes[1])


def test_b04_end_of_a_forked_process_does_not_touch_the_children(tmp_path: Path) -> None:
    flag, go = tmp_path / "flag", tmp_path / "go"

    def wait(objects: Any, seconds: float) -> Any:
        if flag.exists() and not go.exists():
            pid = os.fork()
            if pid == 0:
                supervisor_module._abandon_all()
                os._exit(0)
            os.waitpid(pid, 0)
            go.touch()
        return multiprocessing.connection.wait(objects, seconds)

    source = fakes.Calls(fakes.announce_and_wait, (flag, go))
    assert write(tmp_path, source, hooks=Hooks(wait=wait)) == [tmp_path / "s0"]


def test_c11_calls_of_several_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    good, bad = fakes.FileSource(), fakes.Calls(os._exit, (2,))
    with ThreadPoolExecutor() as threads:
        calls = [
            threads.submit(write, base, source, source, num_processes=1)
            for base, source in ((tmp_path / "0", good), (tmp_path / "1", bad), (tmp_path / "2", good))
            if not base.mkdir()
        ]
        outcomes = [call.result() for call in calls]
    assert outcomes[0] == [tmp_path / "0" / "s0", tmp_path / "0" / "s1"]
    assert "exit code 2" in message(outcomes[1][0])
    assert outcomes[2] == [tmp_path / "2" / "s0", tmp_path / "2" / "s1"]


def test_c11_death_is_seen_although_a_process_forked_from_the_child_lives_on(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    try:
        (outcome,) = write(tmp_path, fakes.Calls(fakes.leave_a_forked_child, (pids,)))
    finally:
        os.kill(int(pids.read_text()), signal.SIGKILL)
    assert "ended with exit code 7" in message(outcome)


def test_c11_writer_that_cannot_be_made_stops_the_pool(tmp_path: Path) -> None:
    outcomes = Supervisor(fakes.writer_fails, num_processes=1, timeout_seconds=60).run(tasks(fakes.FileSource(), None))
    assert "cannot work: RuntimeError: no threads left" in message(outcomes[0])
    assert message(outcomes[1]).startswith("not run: ")


class Deadline:
    """A clock that stands still until a file exists, and is then past every deadline."""

    def __init__(self, flag: Path) -> None:
        self.flag = flag

    def __call__(self) -> float:
        return 1e9 if self.flag.exists() else 0.0


@pytest.mark.parametrize("function", [fakes.announce_and_hang, fakes.announce_and_ignore])
def test_c11_timeout_stops_the_pool(tmp_path: Path, function: Any) -> None:
    flag = tmp_path / "flag"
    cleaned: list[int] = []
    hooks = Hooks(clock=Deadline(flag), clean_up=cleaned.append)
    hang = fakes.Calls(function, (flag,))
    outcomes = write(tmp_path, hang, fakes.FileSource(), num_processes=1, timeout_seconds=3600, hooks=hooks)

    assert "had no result after process_timeout_seconds=3600" in message(outcomes[0])
    assert message(outcomes[1]).startswith("not run: ")
    pid = int(flag.read_text())
    assert not alive(pid)
    # One that ends when it is asked to has cleaned up by itself.
    assert cleaned == ([] if flag.with_suffix(".interrupted").exists() else [pid])


def test_c11_timeout_counts_loading_the_source(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    source = fakes.LoadsBy(fakes.announce_and_hang, (flag,))
    (outcome,) = write(tmp_path, source, timeout_seconds=2.5, hooks=Hooks(clock=Deadline(flag)))
    assert "had no result after process_timeout_seconds=2.5" in message(outcome)


def test_c11_each_job_has_a_deadline_of_its_own(tmp_path: Path) -> None:
    # Each file takes more than half of the time that one job may take.
    hooks = Hooks(clock=lambda: 150.0 * len(list(tmp_path.iterdir())))
    outcomes = write(tmp_path, *[fakes.FileSource()] * 4, num_processes=1, timeout_seconds=200, hooks=hooks)
    assert outcomes == [tmp_path / f"s{number}" for number in range(4)]


def test_c11_child_that_does_not_take_its_job_is_timed_out(tmp_path: Path) -> None:
    suspended = []

    def suspend(done: int) -> None:
        if done == 1:
            suspended.append(int((tmp_path / "s0").read_text().split()[0]))
            os.kill(suspended[0], signal.SIGSTOP)

    late = itertools.count(0, 4000)
    hooks = Hooks(progress=suspend, clock=lambda: next(late) if suspended else 0)
    large = fakes.Calls(len, (b"x" * (8 << 20),))
    outcomes = write(tmp_path, fakes.FileSource(), large, num_processes=1, timeout_seconds=1e4, hooks=hooks)
    assert outcomes[0] == tmp_path / "s0"
    assert "had no result after process_timeout_seconds=10000" in message(outcomes[1])


def test_c11_start_has_a_deadline(tmp_path: Path) -> None:
    started = threading.Event()

    def wait(_objects: Any, _seconds: float) -> list[Any]:
        started.set()
        return []

    hooks = Hooks(clock=lambda: 1e9 if started.is_set() else 0.0, wait=wait)
    outcomes = write(tmp_path, fakes.FileSource(), fakes.FileSource(), num_processes=1, timeout_seconds=9, hooks=hooks)
    assert "was not ready after process_timeout_seconds=9" in message(outcomes[0])
    assert "__main__" in message(outcomes[0])
    assert message(outcomes[1]).startswith("not run: ")


@pytest.mark.parametrize("function", [fakes.close_everything_and_hang, fakes.close_everything_and_return])
def test_c11_child_that_closes_its_channel_is_given_up(tmp_path: Path, function: Any) -> None:
    outcomes = write(tmp_path, fakes.Calls(function), fakes.FileSource(), num_processes=1)
    assert "cannot be heard any more" in message(outcomes[0])
    assert message(outcomes[1]).startswith("not run: ")


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt("stop"), fakes.Halt("now", 7), GeneratorExit()])
def test_c06_what_is_no_exception_ends_the_call_as_an_equal_object(tmp_path: Path, error: BaseException) -> None:
    flag = tmp_path / "flag"
    hang = fakes.Calls(fakes.announce_and_hang, (flag,))
    stop = fakes.Calls(_after, (flag, fakes.raise_error, error))
    with pytest.raises(type(error)) as caught:
        write(tmp_path, hang, stop, fakes.FileSource())

    assert caught.type is type(error)
    assert caught.value.args == error.args
    assert "source 's1'" in caught.value.__notes__[0]
    assert "raise_error" in caught.value.__notes__[0]
    assert flag.with_suffix(".interrupted").exists()


def test_c06_what_cannot_cross_is_told(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"source 's0' .* Uncrossable: held"):
        write(tmp_path, fakes.Calls(fakes.raise_uncrossable))


def test_c11_interrupt_in_the_parent_is_raised_as_it_is(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    interrupt = KeyboardInterrupt()

    def wait(objects: Any, seconds: float) -> Any:
        if flag.exists() and not interrupt.args:
            interrupt.args = ("once",)
            raise interrupt
        return multiprocessing.connection.wait(objects, seconds)

    with pytest.raises(KeyboardInterrupt) as caught:
        write(tmp_path, fakes.Calls(fakes.announce_and_hang, (flag,)), hooks=Hooks(wait=wait))
    assert caught.value is interrupt
    assert flag.with_suffix(".interrupted").exists()
    assert not alive(int(flag.read_text()))


def test_c11_second_interrupt_kills(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    interrupts = iter([KeyboardInterrupt("first"), KeyboardInterrupt("second")])

    def wait(objects: Any, seconds: float) -> Any:
        if flag.exists():
            raise next(interrupts)
        return multiprocessing.connection.wait(objects, seconds)

    with pytest.raises(KeyboardInterrupt, match="second"):
        write(tmp_path, fakes.Calls(fakes.announce_and_keep_the_interpreter, (flag,)), hooks=Hooks(wait=wait))
    assert not alive(int(flag.read_text()))
    # The end of the interpreter waits for calls that still run.
    assert list(supervisor_module._running) == []


def test_c11_interrupt_that_only_a_child_gets_stops_nothing(tmp_path: Path) -> None:
    source = fakes.Calls(os.kill, (0, 0))
    interrupted = fakes.Calls(fakes.interrupt_self_from_outside)
    assert write(tmp_path, interrupted, source) == [tmp_path / "s0", tmp_path / "s1"]


def test_c12_progress_counts_every_outcome(tmp_path: Path) -> None:
    seen: list[int] = []
    write(tmp_path, fakes.Unpicklable(), fakes.FileSource(), fakes.Unloadable(), hooks=Hooks(progress=seen.append))
    assert seen == [1, 2, 3]


def _publish_and(base: Path, name: str, function: Any, *arguments: Any) -> None:
    fakes.FileSource().write(base / name)
    function(*arguments)


def test_c11_a_cache_that_is_there_counts_although_nobody_could_tell(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    hang = fakes.Calls(_publish_and, (tmp_path, "s0", fakes.announce_and_hang, flag))
    die = fakes.Calls(_after, (flag, _publish_and, tmp_path, "s1", os._exit, 3))
    hooks = Hooks(published=lambda name: found if (found := tmp_path / name).exists() else None)
    outcomes = write(tmp_path, hang, die, fakes.FileSource(), hooks=hooks)
    assert outcomes[:2] == [tmp_path / "s0", tmp_path / "s1"]
    assert message(outcomes[2]).startswith("not run: the pool was stopped by source 's1'")


def test_c11_only_what_was_at_work_can_have_been_published(tmp_path: Path) -> None:
    hooks = Hooks(published=lambda name: tmp_path / name)
    outcomes = write(tmp_path, fakes.Calls(os._exit, (3,)), fakes.FileSource(), num_processes=1, hooks=hooks)
    assert outcomes[0] == tmp_path / "s0"
    assert message(outcomes[1]).startswith("not run: ")
