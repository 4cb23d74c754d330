"""Process groups: what ranks agree on, and what each of them hears when they do not."""

import json
import os
import warnings
from pathlib import Path

import pytest

pytest.importorskip("torch.distributed")

import torch.distributed as dist
from support import numbered, write
from torch_ranks import open_caches, run_ranks
from torch_support import loader, recorded_events

import dataset_rt as drt
from dataset_rt.torch import agreement, artifacts, resources


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    with drt.DatasetRuntime(num_workers=1) as runtime:
        return write(runtime, tmp_path_factory.mktemp("caches"), numbered("a", 7), numbered("b", 4))


def random_seeds(rank, paths):
    with recorded_events() as log, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        built = loader(open_caches(paths), batch_size=2, worker_partition="split", verbose=True)
        rows = {each for batch in built for each in batch}
    [ready] = log.named("loader_ready")
    return ready, rows, [(warning.category.__name__, str(warning.message), warning.filename) for warning in caught]


def test_f04_a_random_seed_is_agreed_and_only_rank_zero_warns_of_padding(paths, tmp_path):
    outcomes = [result for _, result in run_ranks(3, tmp_path / "meeting", random_seeds, paths)]
    assert len({ready["seed"] for ready, _, _ in outcomes}) == 1
    assert [ready["rank"] for ready, _, _ in outcomes] == ["0", "1", "2"]
    assert len({ready["worker_seeds"] for ready, _, _ in outcomes}) == 3
    assert {(ready["world_size"], ready["samples"], ready["samples_per_rank"]) for ready, _, _ in outcomes} == {
        ("3", "11", "4")
    }
    assert not outcomes[0][1] & outcomes[1][1]
    [warning] = outcomes[0][2]
    assert warning[0] == "UserWarning"
    assert "11 samples per epoch do not divide evenly among 3 ranks" in warning[1]
    assert "each rank takes 4 in 2 batches, 12 in all (1 repeated as padding)" in warning[1]
    assert Path(warning[2]).name == "torch_support.py"
    assert [each[2] for each in outcomes[1:]] == [[], []]


def leave_out(rank, paths, batch_size):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        built = loader(open_caches(paths), batch_size=batch_size, drop_last=True)
    return len(built), len(list(built)), [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("batch_size", "batches", "told"),
    [(2, 2, "each rank takes 4 in 2 batches, 8 in all (3 left out)"), (6, 0, "0 in 0 batches, 0 in all (11 left out)")],
)
def test_f04_rank_zero_warns_of_what_is_left_out_even_if_it_is_everything(paths, tmp_path, batch_size, batches, told):
    first, second = (result for _, result in run_ranks(2, tmp_path / "meeting", leave_out, paths, batch_size))
    assert first[:2] == second[:2] == (batches, batches)
    [message] = first[2]
    assert told in message
    assert second[2] == []


def construct(rank, paths, of_rank, rows_of_rank=None):
    dataset = open_caches(paths[rank] if isinstance(paths[0], list) else paths)
    if rows_of_rank is not None:
        dataset.update_metadata(dataset.get_metadata()[rows_of_rank[rank]])
    built = loader(dataset, **of_rank[rank])
    return sum(map(len, built))


EVERY = list(range(11))
DISAGREEMENTS = [
    ("samples_per_epoch: 10 on rank 0, 12 on rank 1", [{"samples_per_epoch": 10}, {"samples_per_epoch": 12}], None),
    ("batch_size: 1 on rank 0, 2 on rank 1", [{}, {"batch_size": 2}], None),
    ("drop_last: False on rank 0, True on rank 1", [{}, {"drop_last": True}], None),
    ("shuffle: True on rank 0, False on rank 1", [{}, {"shuffle": False, "worker_partition": "replicate"}], None),
    ("worker_partition: replicate on rank 0, split on rank 1", [{}, {"worker_partition": "split"}], None),
    ("seed: random on rank 0, 4 on rank 1", [{}, {"seed": 4}], None),
    ("table: ", [{}, {}], [EVERY, EVERY[::-1]]),
]


@pytest.mark.parametrize(("told", "of_rank", "rows"), DISAGREEMENTS)
def test_f04_any_difference_is_a_value_error_on_every_rank(paths, tmp_path, told, of_rank, rows):
    for kind, message in run_ranks(2, tmp_path / "meeting", construct, paths, of_rank, rows):
        assert kind == "ValueError"
        assert told in message
        assert "on rank 0" in message
        assert "on rank 1" in message


def test_f04_what_may_differ_does_and_caches_are_known_by_content(runtime, paths, tmp_path):
    import shutil

    copies = [Path(shutil.copytree(path, tmp_path / "elsewhere" / path.name)) for path in paths]
    other = write(runtime, tmp_path, numbered("a", 7, size=9), numbered("b", 4))
    of_rank = [{"num_workers": 1, "verbose": True}, {"worker_partition": "replicate"}]
    outcomes = run_ranks(2, tmp_path / "meeting", construct, [paths, copies], of_rank)
    assert outcomes == [("returned", 6), ("returned", 6)]
    for kind, message in run_ranks(2, tmp_path / "other meeting", construct, [paths, other], [{}, {}]):
        assert kind == "ValueError"
        assert "caches: " in message
        assert "table: " not in message


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ({"batch_size": 0}, "ValueError"),
        ({"batch_size": "many"}, "TypeError"),
        ({"work_dir": "/nowhere"}, "FileNotFoundError"),
        # A directory in which nothing can be made.
        ({"work_dir": "/proc"}, "FileNotFoundError"),
    ],
)
def test_f04_a_bad_argument_on_one_rank_is_told_on_every_rank(paths, tmp_path, bad, kind):
    outcomes = run_ranks(3, tmp_path / "meeting", construct, paths, [{}, bad, {}])
    assert outcomes[1][0] == kind
    for rank in (0, 2):
        assert outcomes[rank][0] == "ValueError"
        assert f"rank 1: {kind}: " in outcomes[rank][1]


def stumble(rank, paths):
    warnings.simplefilter("error")
    if rank == 1:
        resources.observe = lambda affinity: resources.CpuBudget(1, ("cpu.max: torn",))
    return len(loader(open_caches(paths), native_num_workers="auto"))


def test_f04_whatever_stops_one_rank_is_told_on_every_rank(paths, tmp_path):
    (kind, _), (other_kind, other) = reversed(run_ranks(2, tmp_path / "meeting", stumble, paths))
    assert (kind, other_kind) == ("RuntimeWarning", "ValueError")
    assert "refused on rank 1: RuntimeWarning: a CPU limit cannot be read" in other


def warned(rank, paths):
    warnings.simplefilter("error")
    return len(loader(open_caches(paths), batch_size=2))


def test_f04_a_warning_that_is_an_error_on_one_rank_fails_all(paths, tmp_path):
    first, *others = run_ranks(3, tmp_path / "meeting", warned, paths)
    assert first[0] == "UserWarning"
    for kind, message in others:
        assert kind == "ValueError"
        assert "constructing it failed on rank 0: UserWarning: 11 samples per epoch do not divide evenly" in message


def disagree_over_tcp(rank, paths, port):
    """Use a store like that of torchrun, which lives in the process of one rank, and let that one go first."""
    dist.destroy_process_group()
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        port.write_text(str(store.port))
    else:
        store = dist.TCPStore("127.0.0.1", int(port.read_text()), is_master=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    dataset = open_caches(paths)
    length = len(loader(dataset))
    try:
        loader(dataset, batch_size=1 + rank)
    except ValueError as error:
        return length, str(error)


def test_f04_the_rank_with_the_store_waits_until_the_others_know(paths, tmp_path):
    os.mkfifo(tmp_path / "port")
    given = (disagree_over_tcp, paths, tmp_path / "port")
    outcomes = run_ranks(2, tmp_path / "meeting", *given, leave_together=False)
    assert outcomes[0] == outcomes[1]
    kind, (length, message) = outcomes[0]
    assert (kind, length) == ("returned", 6)
    assert "batch_size: 1 on rank 0, 2 on rank 1" in message


def several(rank, paths):
    dataset = open_caches(paths)
    said = []
    for number in range(3):
        try:
            said.append(len(loader(dataset, batch_size=2 if number == 1 and rank == 1 else 1)))
        except ValueError as error:
            said.append(type(error).__name__)
    return said


def test_f04_after_a_refusal_ranks_can_construct_the_next_loader(paths, tmp_path):
    outcomes = run_ranks(2, tmp_path / "meeting", several, paths)
    assert outcomes == [("returned", [6, "ValueError", 6])] * 2


def late(rank, paths, gone):
    agreement.PATIENCE_SECONDS = 3.0
    dataset = open_caches(paths)
    if rank == 1:
        # Comes when the first has given up: until then nobody writes.
        gone.read_bytes()
    try:
        return len(loader(dataset))
    finally:
        if rank == 0:
            gone.write_bytes(b"gone")


def test_f04_a_rank_that_comes_too_late_is_told_and_so_are_those_that_waited(paths, tmp_path):
    os.mkfifo(tmp_path / "gone")
    outcomes = run_ranks(3, tmp_path / "meeting", late, paths, tmp_path / "gone")
    for kind, message in outcomes:
        assert kind == "RuntimeError"
        assert "rank 1 did not construct loader 0 of this group within 3 s" in message
        assert "in the same order" in message
    assert agreement.PATIENCE_SECONDS == 60


def local_counts(rank, paths, value):
    os.environ["LOCAL_WORLD_SIZE"] = value
    return len(loader(open_caches(paths), num_workers=0, native_num_workers=1))


@pytest.mark.parametrize("value", ["0", "3", "two"])
def test_f08_an_impossible_local_world_size_in_a_group_is_refused(paths, tmp_path, value):
    for kind, message in run_ranks(2, tmp_path / "meeting", local_counts, paths, value):
        assert kind == "ValueError"
        assert "LOCAL_WORLD_SIZE must be an integer from 1 to the world size, 2" in message


def construct_where_exports_fail_on_one(rank, paths):
    if rank == 1:

        def full(*_args, **_given):
            raise OSError(28, "No space left on device", "population.bin")

        artifacts.export = full
    return construct(rank, paths, [{}, {}])


def test_f04_what_fails_on_one_rank_behind_the_agreement_fails_on_all(paths, tmp_path):
    first, second = run_ranks(2, tmp_path / "meeting", construct_where_exports_fail_on_one, paths)
    assert second[0] == "OSError"
    assert first[0] == "ValueError"
    assert "constructing it failed on rank 1: OSError: [Errno 28]" in first[1]


def test_f04_ids_belong_to_their_caches(tmp_path):
    with drt.DatasetRuntime(num_workers=1) as runtime:
        written = write(runtime, tmp_path, numbered("x", 5, size=8), numbered("y", 5, size=9))
    for path in written:
        manifest = json.loads((path / "manifest.json").read_text())
        old = {key: value for key, value in manifest.items() if key not in ("cache_id", "manifest_checksum")}
        (path / "manifest.json").chmod(0o644)
        (path / "manifest.json").write_text(json.dumps(old | {"format_version": 2}))
    for kind, message in run_ranks(2, tmp_path / "meeting", construct, [written, written[::-1]], [{}, {}]):
        assert kind == "ValueError"
        assert "caches: " in message
