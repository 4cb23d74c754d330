"""Automatic counts from affinity, cgroup limits of both versions and the launcher's word, over made-up file trees."""

import os
from pathlib import Path

import pytest

from dataset_rt.torch import resources

EIGHT = frozenset(range(8))
V2_MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def v2(root: Path, group: str, files: dict[str, str], mount: str = V2_MOUNT) -> Path:
    return tree(root, {"proc/self/cgroup": f"0::{group}\n", "proc/self/mountinfo": mount, **files})


def v1(root: Path, path: str, files: dict[str, str], mount_root: str = "/") -> Path:
    mounts = (
        f"33 25 0:29 {mount_root} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        f"34 25 0:30 {mount_root} /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        f"35 25 0:31 {mount_root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    )
    groups = f"5:memory:{path}\n4:cpuset:{path}\n3:cpu,cpuacct:{path}\n"
    return tree(root, {"proc/self/cgroup": groups, "proc/self/mountinfo": mounts, **files})


def test_f08_without_cgroups_affinity_decides(tmp_path):
    assert resources.observe(EIGHT, root=tmp_path) == resources.CpuBudget(8)


def test_f08_this_machine_can_be_read():
    found = resources.observe(resources.affinity())
    assert found.problems == ()
    assert 1 <= found.cpus <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("limit", "cpus"),
    [("max 100000", 8), ("200000 100000", 2), ("350000 100000", 3), ("50000 100000", 1), ("9900000 100000", 8)],
)
def test_f08_v2_quota_rounds_down_with_a_minimum_of_one(tmp_path, limit, cpus):
    root = v2(tmp_path, "/job", {"sys/fs/cgroup/job/cpu.max": limit + "\n"})
    assert resources.observe(EIGHT, root=root) == resources.CpuBudget(cpus)


def test_f08_v2_limits_of_all_groups_above_count(tmp_path):
    root = v2(
        tmp_path,
        "/slice/job",
        {"sys/fs/cgroup/slice/job/cpu.max": "max 100000\n", "sys/fs/cgroup/slice/cpu.max": "300000 100000\n"},
    )
    assert resources.observe(EIGHT, root=root).cpus == 3


def test_f08_v2_cpu_set_is_intersected_with_affinity(tmp_path):
    root = v2(tmp_path, "/job", {"sys/fs/cgroup/job/cpuset.cpus.effective": "6-20,0\n"})
    assert resources.observe(EIGHT, root=root).cpus == 3
    assert resources.observe(frozenset({1, 2}), root=root).problems == (
        "CPU affinity and cgroup CPU sets have no CPU in common",
    )


def test_f08_v2_path_told_from_outside_the_container_means_the_mount_itself(tmp_path):
    files = {"sys/fs/cgroup/cpu.max": "100000 50000\n", "sys/outside/cpu.max": "100000 100000\n"}
    root = v2(tmp_path, "/../../outside", files)
    assert resources.observe(EIGHT, root=root).cpus == 2
    other = v2(tmp_path / "b", "/docker/abc", {"sys/fs/cgroup/cpu.max": "300000 100000\n"})
    assert resources.observe(EIGHT, root=other).cpus == 3


def test_f08_v2_mount_of_a_subtree_and_escaped_names(tmp_path):
    mount = r"30 23 0:26 /pods /my\040cgroup rw - cgroup2 cgroup2 rw" + "\n"
    root = v2(tmp_path, "/pods/one", {"my cgroup/one/cpu.max": "500000 100000\n"}, mount)
    assert resources.observe(EIGHT, root=root).cpus == 5


def test_f08_v1_quota_and_cpu_set(tmp_path):
    root = v1(
        tmp_path,
        "/job",
        {
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "450000\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpuset/job/cpuset.cpus": "0-6\n",
        },
    )
    assert resources.observe(EIGHT, root=root).cpus == 4
    (root / "sys/fs/cgroup/cpuset/job/cpuset.effective_cpus").write_text("0-1,3\n")
    assert resources.observe(EIGHT, root=root).cpus == 3


def test_f08_v1_without_limit_and_container_mount(tmp_path):
    files = {
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    }
    root = v1(tmp_path, "/docker/abc", files, mount_root="/docker/abc")
    assert resources.observe(EIGHT, root=root).cpus == 8
    (root / "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us").write_text("200000\n")
    assert resources.observe(EIGHT, root=root).cpus == 2


@pytest.mark.parametrize("limit", ["nonsense", "100000", "100000 0", "-5 100000", "1.5 2"])
def test_f08_unreadable_limits_fall_back_to_one_cpu(tmp_path, limit):
    root = v2(tmp_path, "/job", {"sys/fs/cgroup/job/cpu.max": limit + "\n"})
    found = resources.observe(EIGHT, root=root)
    assert found.cpus == 1
    [problem] = found.problems
    assert "job/cpu.max" in problem
    assert "expected a quota and a period" in problem


def test_f08_an_unreadable_file_is_a_problem_that_names_it(tmp_path):
    root = v2(tmp_path, "/job", {})
    (root / "sys/fs/cgroup/job/cpuset.cpus.effective").mkdir(parents=True)
    found = resources.observe(EIGHT, root=root)
    assert found.cpus == 1
    assert "cpuset.cpus.effective" in found.problems[0]
    bad_list = v2(tmp_path / "b", "/job", {"sys/fs/cgroup/job/cpuset.cpus.effective": "0-x\n"})
    assert "expected a list of CPUs" in resources.observe(EIGHT, root=bad_list).problems[0]


def test_f08_unknown_cpu_count_is_a_problem(tmp_path):
    assert resources.observe(None, root=tmp_path) == resources.CpuBudget(1, ("the number of CPUs is unknown",))


@pytest.mark.parametrize(
    ("cpus", "ranks", "workers"),
    [(1, 1, 0), (2, 1, 1), (3, 1, 2), (5, 1, 4), (64, 1, 4), (8, 2, 3), (8, 8, 0), (2, 4, 0)],
)
def test_f08_auto_workers(cpus, ranks, workers):
    assert resources.auto_workers(cpus, ranks) == workers


@pytest.mark.parametrize(
    ("cpus", "ranks", "consumers", "threads"),
    [(1, 1, 1, 1), (2, 1, 1, 2), (64, 1, 1, 4), (8, 1, 4, 2), (8, 2, 4, 1), (12, 2, 2, 3), (1, 4, 4, 1)],
)
def test_f08_auto_threads(cpus, ranks, consumers, threads):
    assert resources.auto_threads(cpus, ranks, consumers) == threads


def test_f08_local_ranks_come_from_the_launcher_or_else_the_group():
    assert resources.local_ranks({}, None) == 1
    assert resources.local_ranks({}, 6) == 6
    assert resources.local_ranks({"LOCAL_WORLD_SIZE": "2"}, 6) == 2
    assert resources.local_ranks({"LOCAL_WORLD_SIZE": "6"}, 6) == 6
    assert resources.local_ranks({"LOCAL_WORLD_SIZE": "8"}, None) == 8


@pytest.mark.parametrize(
    ("text", "world_size"),
    [("0", 4), ("5", 4), ("-1", 4), ("two", 4), ("", 4), ("1.0", 4), (" 2", 4), ("1_0", 20), ("0", None)],
)
def test_f08_impossible_local_ranks_are_refused(text, world_size):
    with pytest.raises(ValueError, match="LOCAL_WORLD_SIZE must be an integer") as refusal:
        resources.local_ranks({"LOCAL_WORLD_SIZE": text}, world_size)
    assert repr(text) in str(refusal.value)
