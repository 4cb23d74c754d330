"""How long loading workers live: from pass to pass, killed, copied, forked, and left behind by the process that reads."""

import copy
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch.utils.data")

from support import numbered, opened, write
from torch_support import declared, fast_start, in_order, loader, parse_event, tagged, tagged_pid

from dataset_rt.torch.plan import Plan


@pytest.fixture
def dataset(runtime, tmp_path):
    return opened(runtime, write(runtime, tmp_path, numbered("a", 7), numbered("b", 4)))


def workers_of(built):
    return [worker.pid for worker in built._iterator._workers]


def wait_for_the_end_of(pids):
    deadline = time.monotonic() + 30
    while any(running(pid) for pid in pids):
        assert time.monotonic() < deadline
        multiprocessing.active_children()


def test_f03_a_pass_that_gave_its_last_batch_leaves_its_workers_to_the_next(dataset):
    built = loader(dataset, shuffle=False, samples_per_epoch=2, batch_size=1, num_workers=1, collate_fn=tagged_pid)
    given = []
    for _ in range(3):
        # Nobody asks for one more and sees the end, and the pass before is still there when the next one begins.
        batches = iter(built)
        given += [next(batches) for _ in range(len(built))]
    assert [row for _, row in given] == in_order(dataset)[:6]
    assert len({pid for pid, _ in given}) == 1
    assert next(batches, None) is None


def fail_in_the_idle_one(worker_id):
    if worker_id == 1:
        raise LookupError("set-up")


def test_f03_an_error_of_a_worker_without_batches_comes_out(dataset):
    batches = iter(loader(dataset, samples_per_epoch=1, num_workers=2, worker_init_fn=fail_in_the_idle_one))
    assert len(next(batches)) == 1
    with pytest.raises(LookupError, match="set-up"):
        next(batches)


@pytest.mark.parametrize("method", ["forkserver", "fork"])
def test_f03_a_killed_worker_ends_its_pass_and_no_other(dataset, method):
    built = loader(
        dataset,
        shuffle=False,
        samples_per_epoch=8,
        batch_size=1,
        num_workers=2,
        prefetch_factor=1,
        collate_fn=tagged,
        multiprocessing_context=fast_start() if method == "forkserver" else method,
    )
    plan = Plan(8, 11, 1, 1, False, "split", None)
    passes = list(declared(dataset, plan, 2, 3))
    batches = iter(built)
    assert next(batches) == passes[0][0]
    victim = workers_of(built)[1]
    os.kill(victim, signal.SIGKILL)
    # From torch if its signal handler comes first.
    with pytest.raises(RuntimeError, match="killed by signal"):
        list(batches)
    for _ in range(2):
        # Torch would give what the other worker has, as if that were all.
        with pytest.raises(
            RuntimeError, match=rf"loading worker {victim} was killed by signal 9 \(SIGKILL\); the rest"
        ):
            next(batches)
    assert [list(built), list(built)] == passes[1:]
    assert victim not in workers_of(built)


@pytest.mark.parametrize("known", [True, False])
def test_f03_a_worker_that_is_killed_between_two_passes_is_replaced(dataset, known):
    built = loader(dataset, shuffle=False, samples_per_epoch=4, batch_size=1, num_workers=1)
    order = [[row] for row in in_order(dataset)]
    assert list(built) == order[0:4]
    [victim] = built._iterator._workers
    os.kill(victim.pid, signal.SIGKILL)
    if known:
        victim.join()
    assert list(built) == order[4:8]
    assert workers_of(built) != [victim.pid]


def leave(_batch):
    os._exit(3)


@pytest.mark.filterwarnings("ignore:persistent_workers=False")
@pytest.mark.parametrize("persistent", [True, False])
def test_f03_a_worker_that_leaves_is_told_with_its_exit_code(dataset, persistent):
    built = loader(dataset, num_workers=1, collate_fn=leave, persistent_workers=persistent)
    with pytest.raises(RuntimeError, match=r"ended with exit code 3;.* on stderr: often .*__main__"):
        list(built)


def test_f03_a_pass_whose_start_was_interrupted_does_not_shift_the_next(dataset, monkeypatch):
    built = loader(dataset, shuffle=False, samples_per_epoch=4, batch_size=1, num_workers=1)
    order = [[row] for row in in_order(dataset)]
    assert list(built) == order[0:4]
    iterator = type(built._iterator)
    reset = iterator._reset

    def interrupted(self, loader, first_iter=False):
        reset(self, loader, first_iter)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(iterator, "_reset", interrupted)
    with pytest.raises(KeyboardInterrupt):
        iter(built)
    assert list(built) == order[4:8]


def test_b04_a_forked_child_has_workers_of_its_own(dataset):
    built = loader(
        dataset, shuffle=False, samples_per_epoch=3, batch_size=1, num_workers=1, multiprocessing_context="fork"
    )
    order = [[row] for row in in_order(dataset)]
    running = iter(built)
    assert next(running) == order[0]
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writable, repr(list(built)).encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(readable, 10_000).decode() == repr(order[3:6])
    assert list(running) == order[1:3]
    assert list(built) == order[3:6]
    os.close(readable)
    os.close(writable)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda built: pickle.loads(pickle.dumps(built))])
def test_f03_a_copy_of_a_loader_with_workers_goes_on_with_its_own(dataset, copied):
    built = loader(dataset, shuffle=False, samples_per_epoch=3, batch_size=1, num_workers=1)
    order = [[row] for row in in_order(dataset)]
    assert list(built) == order[0:3]
    other = copied(built)
    assert list(other) == list(built) == order[3:6]
    [victim] = workers_of(built)
    assert workers_of(other) != [victim]
    # Each goes on behind its own passes, with new workers, too.
    os.kill(victim, signal.SIGKILL)
    assert list(built) == list(other) == order[6:9]


FORGOTTEN = """
import os, signal, sys, threading
import dataset_rt as drt

def never(_batch):
    # Returns when the other end is opened.
    os.close(os.open(sys.argv[3], os.O_WRONLY))
    threading.Event().wait()

if __name__ == "__main__":
    runtime = drt.DatasetRuntime(num_workers=1)
    dataset = runtime.cached_dataset([sys.argv[1]], reader_config=drt.ReaderConfig(seed=1))
    loader = dataset.to_torch_dataloader(multiprocessing_context=sys.argv[2], num_workers=1, collate_fn=never)
    reading = iter(loader)
    print(loader._iterator._workers[0].pid, flush=True)
    os.close(os.open(sys.argv[3], os.O_RDONLY))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("method", ["forkserver", "spawn", "fork"])
def test_b04_a_busy_worker_ends_with_the_process_that_reads(dataset, tmp_path, method):
    program, busy = tmp_path / "forgotten.py", tmp_path / "busy"
    program.write_text(FORGOTTEN)
    os.mkfifo(busy)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": str(tmp_path)}
    command = [sys.executable, str(program), str(dataset.cache_paths[0]), method, str(busy)]
    with (tmp_path / "printed").open("wb") as printed, (tmp_path / "logged").open("wb") as logged:
        # No pipes: the end of one would wait for the worker.
        killed = subprocess.run(command, env=environment, stdout=printed, stderr=logged, check=False)
    assert killed.returncode == -signal.SIGKILL
    worker = (tmp_path / "printed").read_text().strip()
    wait_for_the_end_of([int(worker)])
    # Nobody has configured any logging there.
    events = [parse_event(line) for line in (tmp_path / "logged").read_text().splitlines() if line.startswith("event=")]
    assert [event["event"] for event in events] == ["loader_ready", "reader_started", "reader_pass"]
    assert [event["pid"] == worker for event in events] == [False, True, True]


def test_a03_workers_are_gone_with_the_loader(dataset):
    built = loader(dataset, num_workers=2)
    list(built)
    workers = workers_of(built)
    assert all(Path(f"/proc/{pid}").exists() for pid in workers)
    del built
    gc.collect()
    wait_for_the_end_of(workers)


def running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
