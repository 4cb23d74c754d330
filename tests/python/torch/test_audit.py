"""The audit: in real runs of one, two and three ranks every consumer reads exactly what the plan declares for it."""

from itertools import product

import pytest

pytest.importorskip("torch.distributed")

from support import numbered, write
from torch_audit import TABLES, Audit, Case, Visit, gather
from torch_ranks import run_ranks

import dataset_rt as drt

ROWS = {"full": 11, "filtered": 2, "duplicated": 7, "weighted": 11, "single": 1}


def policies(*keep, workers=0, method="spawn", passes=3):
    """Cases of every table, budget, partition and order, or those of these numbers."""
    cases = [
        Case(table, samples, batch_size, drop_last, partition, seed, workers, method, passes)
        for table, (samples, batch_size, drop_last), partition, seed in product(
            TABLES,
            # The rows themselves, with and without the rest; more than there are, and fewer than consumers.
            [(None, 2, False), (None, 2, True), (25, 4, False), (1, 3, False), (None, 2**40, False)],
            ["split", "replicate"],
            [None, 8],
        )
        for samples in [samples or ROWS[table]]
    ]
    return [cases[number % len(cases)] for number in keep] if keep else cases


# One start of the ranks for each entry. Of 100 policies those with loading workers are chosen so that together they have
# all tables, partitions and orders, and idle workers.
RUNS = [
    (1, policies()),
    (2, policies()),
    (3, policies()),
    (1, policies(0, 5, 7, 8, 17, 21, 27, 42, 45, 61, 63, 87, workers=2, method="fork")),
    (2, policies(1, 4, 6, 28, 41, 47, 62, 65, 80, workers=1, method="forkserver")),
    (2, policies(3, 9, 40, 69, workers=2, method="fork")),
    (3, policies(0, 10, 23, 49, 61, 83, workers=2, method="fork")),
    (3, policies(5, 63, workers=1, method="fork")),
    (2, policies(44, workers=1, method="fork")),
    # These import torch once for each worker.
    (2, policies(61, workers=1, method="spawn")),
    (2, policies(2, workers=2, method="spawn")),
    (2, policies(63, workers=2, method="forkserver")),
    (3, policies(43, workers=1, method="spawn")),
    (3, policies(20, workers=1, method="forkserver")),
    (3, policies(1, workers=2, method="spawn")),
    (3, policies(62, workers=2, method="forkserver")),
]


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    with drt.DatasetRuntime(num_workers=1) as runtime:
        return write(runtime, tmp_path_factory.mktemp("caches"), numbered("a", 7), numbered("b", 4))


def name_of(run):
    ranks, cases = run
    return f"{ranks} ranks, {cases[0].workers} workers, {cases[0].method if cases[0].workers else 'no start'}"


@pytest.mark.parametrize("run", RUNS, ids=name_of)
def test_f10_every_visit_is_as_declared(runtime, paths, tmp_path, run):
    ranks, cases = run
    if ranks == 1:
        outcomes = [("returned", gather(0, paths, cases))]
    else:
        outcomes = run_ranks(ranks, tmp_path / "meeting", gather, paths, cases)
    assert [kind for kind, _ in outcomes] == ["returned"] * ranks, outcomes
    for case, *gathered in zip(cases, *(result for _, result in outcomes), strict=True):
        Audit(case, ranks, paths, runtime).check(gathered)


def test_f10_the_runs_cover_what_must_be_covered(runtime, paths):
    assert {(ranks, case.workers) for ranks, cases in RUNS for case in cases} == set(product([1, 2, 3], [0, 1, 2])) - {
        (1, 1)
    }
    with_workers = [(ranks, case) for ranks, cases in RUNS for case in cases if case.workers]
    assert {(ranks, case.workers, case.method) for ranks, case in with_workers if ranks > 1} == set(
        product([2, 3], [1, 2], ["spawn", "fork", "forkserver"])
    )
    assert {case.table for _, case in with_workers} == set(TABLES)
    assert {(case.partition, case.seed is None, case.drop_last) for _, case in with_workers} == set(
        product(["split", "replicate"], [True, False], [True, False])
    )
    audits = [Audit(case, ranks, paths, runtime) for ranks, case in with_workers]
    assert any(audit.plan.budget == 0 for audit in audits)
    assert any(0 < sum(bool(each.quota) for each in audit.consumers) < len(audit.consumers) for audit in audits)
    assert any(len(audit.consumers) > audit.plan.rows for audit in audits)
    assert any(audit.plan.effective_samples > audit.plan.samples for audit in audits)
    assert any(0 < audit.plan.effective_samples < audit.plan.samples for audit in audits)


@pytest.mark.parametrize("wrong", ["lost", "doubled", "swapped", "another pass", "another worker"])
def test_f10_the_audit_notices(runtime, paths, wrong):
    case = Case("full", 11, 2, False, "split", None)
    [(length, batches, visits)] = gather(0, paths, [case])
    audit = Audit(case, 1, paths, runtime)
    audit.check([(length, batches, visits)])
    first, second = visits[3:5]
    forged = {
        "lost": [],
        "doubled": [first, second, second],
        # The same samples, as often, in as many batches.
        "swapped": [Visit(*first[:4], *second[4:]), Visit(*second[:4], *first[4:])],
        "another pass": [first._replace(completed=1), second],
        "another worker": [first._replace(worker=1), second],
    }[wrong]
    with pytest.raises(AssertionError):
        audit.check([(length, batches, visits[:3] + forged + visits[5:])])
