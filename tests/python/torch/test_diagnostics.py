"""Log events and warnings: what they say, where they go, and whom they point at."""

import logging
import os
import subprocess
import sys
import warnings

import pytest

pytest.importorskip("torch.utils.data")

from support import numbered, opened, write
from torch_support import loader, parse_event, recorded_events

from dataset_rt.torch import diagnostics, resources


@pytest.fixture
def dataset(runtime, tmp_path):
    return opened(runtime, write(runtime, tmp_path, numbered("a", 5)), prefetch_size=17)


def test_f08_a_shuffled_loader_tells_everything_it_decided(dataset):
    with recorded_events() as log:
        built = loader(dataset, seed=9, batch_size=2, native_num_workers=3, verbose=True)
        for _ in range(2):
            list(built)
    [ready] = log.named("loader_ready")
    assert ready == {
        "event": "loader_ready",
        "pid": str(os.getpid()),
        "rank": "0",
        "seed": "9",
        "worker_seeds": ready["worker_seeds"],
        "num_workers": "0",
        "native_threads_per_consumer": "3",
        "partition": "replicate",
        "persistent": "False",
        "prefetch_factor": "disabled",
        "native_prefetch": "17",
        "samples": "5",
        "samples_per_rank": "5",
        "batch_size": "2",
        "world_size": "1",
        "shuffle": "True",
        "multiprocessing_context": "disabled",
    }
    assert [event["event"] for event in log.events] == ["loader_ready", "reader_started", "reader_pass", "reader_pass"]
    for event in log.events[1:]:
        assert event == {
            "event": event["event"],
            "pid": str(os.getpid()),
            "rank": "0",
            "worker": "0",
            "seed": ready["worker_seeds"],
            "native_threads": "3",
            "persistent": "False",
            "samples": "5",
            "population": "5",
            "sampling_reset": "False",
        }


def test_f08_a_sequential_loader_has_no_seeds(dataset):
    with recorded_events() as log:
        list(loader(dataset, shuffle=False, verbose=True))
    [ready] = log.named("loader_ready")
    assert (ready["seed"], ready["worker_seeds"], ready["partition"]) == ("None", "disabled", "split")
    assert [event["seed"] for event in log.events[1:]] == ["None", "None"]


def test_f08_a_consumer_without_rows_says_so_once(dataset):
    with recorded_events() as log:
        built = loader(dataset, batch_size=6, drop_last=True, verbose=True)
        for _ in range(3):
            assert list(built) == []
    assert [event["event"] for event in log.events] == ["loader_ready", "reader_empty"]
    assert log.events[1]["population"] == "0"


def test_f08_verbose_false_is_silent_and_the_workers_of_a_loader_are_listed(dataset):
    with recorded_events() as log:
        list(loader(dataset))
        assert log.events == []
        loader(dataset, num_workers=2, seed=1, prefetch_factor=4, verbose=True)
    [ready] = log.events
    assert len(set(ready["worker_seeds"].split(","))) == 2
    assert ready["persistent"] == "True"
    assert ready["prefetch_factor"] == "4"
    assert ready["multiprocessing_context"] == "forkserver"


PROGRAM = """
import logging, sys
from dataset_rt.torch.diagnostics import log_event
exec(sys.argv[1])
log_event("reader_pass", seeds=[1, 2], seed=None)
"""


@pytest.mark.parametrize(
    ("setup", "shown"),
    [
        ("", True),
        ("logging.basicConfig()", False),
        ("logging.basicConfig(level='INFO')", True),
        ("logging.basicConfig(level='WARNING')", False),
        ("logging.basicConfig(); logging.getLogger('dataset_rt').setLevel('INFO')", True),
        ("logging.getLogger('dataset_rt').setLevel('WARNING')", False),
        ("logging.getLogger('dataset_rt.loader').setLevel('DEBUG')", True),
        ("logging.getLogger('dataset_rt.loader').disabled = True", False),
        ("logging.disable(logging.INFO)", False),
        # The level of the root counts without handlers, too, except that WARNING is what it has when nobody chose one.
        ("logging.getLogger().setLevel('ERROR')", False),
        ("logging.getLogger().setLevel('CRITICAL'); logging.getLogger('dataset_rt').setLevel('INFO')", True),
        ("logging.getLogger().setLevel('INFO')", True),
        ("logging.getLogger().setLevel('WARNING')", True),
        ("logging.getLogger('dataset_rt.loader').propagate = False", True),
        ("logging.lastResort = None", False),
        ("logging.lastResort.setLevel('ERROR')", False),
        ("logging.lastResort.addFilter(lambda record: False)", False),
        ("logging.getLogger('dataset_rt.loader').addFilter(lambda record: False)", False),
        ("logging.getLogger('dataset_rt').addHandler(logging.NullHandler())", False),
    ],
)
def test_f08_levels_handlers_and_filters_are_respected(setup, shown):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, setup], env=environment, check=True, capture_output=True, text=True
    )
    assert ran.stdout == ""
    line = "event=reader_pass seeds=1,2 seed=None"
    assert ran.stderr.count(line) == shown
    if setup == "":
        assert ran.stderr == line + "\n"
        assert parse_event(line) == {"event": "reader_pass", "seeds": "1,2", "seed": "None"}


def test_f08_events_are_records_of_the_documented_logger():
    assert diagnostics.LOGGER_NAME == "dataset_rt.loader"
    with recorded_events() as log:
        diagnostics.log_event("x")
    assert log.events == [{"event": "x"}]
    assert logging.getLogger("dataset_rt.loader").level == logging.NOTSET


def test_f08_the_replay_warning_points_at_the_caller_and_verbose_does_not_hide_it(dataset):
    with pytest.warns(UserWarning, match="repeats the same samples") as caught:
        dataset.to_torch_dataloader(num_workers=1, persistent_workers=False, verbose=False)
    loader_line = sys._getframe().f_lineno - 1
    [warning] = caught
    assert (warning.filename, warning.lineno) == (__file__, loader_line)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader(dataset, num_workers=1)
        loader(dataset, persistent_workers=False)
        loader(dataset, batch_size=3, drop_last=True)


def test_f08_unreadable_limits_warn_and_mean_one_cpu(dataset, monkeypatch):
    monkeypatch.setattr(resources, "observe", lambda affinity: resources.CpuBudget(1, ("cpu.max: torn",)))
    with pytest.warns(RuntimeWarning, match=r"one CPU is assumed: cpu\.max: torn") as caught, recorded_events() as log:
        dataset.to_torch_dataloader()
    assert caught[0].filename == __file__
    assert (log.events[0]["num_workers"], log.events[0]["native_threads_per_consumer"]) == ("0", "1")


@pytest.mark.parametrize(
    ("cpus", "ranks", "given", "workers", "threads"),
    [
        (8, None, {}, 4, 2),
        (8, "2", {}, 3, 1),
        (8, None, {"num_workers": 0}, 0, 4),
        (1, None, {}, 0, 1),
        (3, None, {"native_num_workers": 7}, 2, 7),
    ],
)
def test_f08_automatic_counts_share_one_observation(dataset, monkeypatch, cpus, ranks, given, workers, threads):
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    if ranks is not None:
        monkeypatch.setenv("LOCAL_WORLD_SIZE", ranks)
    observed = []
    monkeypatch.setattr(resources, "observe", lambda affinity: observed.append(affinity) or resources.CpuBudget(cpus))
    with recorded_events() as log, warnings.catch_warnings():
        # Torch warns of more workers than this machine has CPUs.
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        dataset.to_torch_dataloader(**given)
    [ready] = log.events
    assert (ready["num_workers"], ready["native_threads_per_consumer"]) == (str(workers), str(threads))
    assert len(observed) == 1


def test_f08_explicit_counts_need_no_observation(dataset, monkeypatch):
    monkeypatch.setattr(resources, "observe", lambda affinity: pytest.fail("observed"))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "many")
    loader(dataset, num_workers=0, native_num_workers=1)
    with pytest.raises(ValueError, match="LOCAL_WORLD_SIZE must be an integer at least 1"):
        loader(dataset, num_workers="auto")
