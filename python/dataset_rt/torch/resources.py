"""How many processes and threads a loader may use: CPU affinity, cgroup limits, and what the launcher says."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

MAX_AUTO_WORKERS = 4
MAX_AUTO_THREADS = 4
_CPU_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True, slots=True)
class CpuBudget:
    """CPUs that this process may keep busy, and what could not be read while finding out."""

    cpus: int
    problems: tuple[str, ...] = ()


def auto_workers(cpus: int, local_ranks: int) -> int:
    """Loading workers for one rank: all CPUs of its share but one, at most four."""
    return min(MAX_AUTO_WORKERS, max(1, cpus // local_ranks) - 1)


def auto_threads(cpus: int, local_ranks: int, consumers: int) -> int:
    """Native threads for each consumer of one rank: an equal share, at least one, at most four."""
    return min(MAX_AUTO_THREADS, max(1, cpus // local_ranks // consumers))


def local_ranks(environment: Mapping[str, str], world_size: int | None) -> int:
    """Ranks on this machine, from `LOCAL_WORLD_SIZE`; `world_size` is `None` outside a process group.

    Where nothing says how many there are, all ranks of the group are taken to be here.

    Raises:
        ValueError: The variable holds no integer that is possible.
    """
    text = environment.get("LOCAL_WORLD_SIZE")
    if text is None:
        return world_size or 1
    # `int` would also accept "1_0", spaces and digits of other scripts.
    number = int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0
    if number < 1 or (world_size is not None and number > world_size):
        expected = "at least 1" if world_size is None else f"from 1 to the world size, {world_size}"
        raise ValueError(
            f"LOCAL_WORLD_SIZE must be an integer {expected}, found {text!r}; correct the variable or remove it"
        )
    return number


def observe(affinity: frozenset[int] | None, *, root: Path = Path("/")) -> CpuBudget:
    """Count the CPUs of this process; whatever limit cannot be read makes the answer one CPU.

    `affinity` is what `affinity()` says. `root` is where `proc` and the mounted cgroups are.
    """
    problems: list[str] = []
    cpus = affinity
    if cpus is None:
        problems.append("the number of CPUs is unknown")
    quotas: list[float] = []
    for directory, version in _limit_directories(root, problems):
        try:
            quota = _quota(directory, version)
            allowed = _cpuset(directory, version)
        except (OSError, ValueError) as error:
            problems.append(str(error))
            continue
        if quota is not None:
            quotas.append(quota)
        if allowed is not None and cpus is not None:
            cpus &= allowed
    if cpus is not None and not cpus:
        problems.append("CPU affinity and cgroup CPU sets have no CPU in common")
    if problems or cpus is None:
        return CpuBudget(1, tuple(problems))
    return CpuBudget(max(1, int(min([len(cpus), *quotas]))))


def affinity() -> frozenset[int] | None:
    """CPUs on which this process may run, `None` if the platform does not tell."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    count = os.cpu_count()
    return None if count is None else frozenset(range(count))


def _limit_directories(root: Path, problems: list[str]) -> Iterator[tuple[Path, int]]:
    """Directories of the cgroups this process is in, and of all above them that are visible."""
    try:
        memberships = (root / "proc/self/cgroup").read_text()
        mounts = (root / "proc/self/mountinfo").read_text()
    except FileNotFoundError:
        return
    except OSError as error:
        problems.append(str(error))
        return
    for line in memberships.splitlines():
        hierarchy, controllers, path = line.split(":", 2)
        version = 2 if hierarchy == "0" and not controllers else 1
        if version == 1 and not {"cpu", "cpuset"} & set(controllers.split(",")):
            continue
        for mount_point, mount_root in _cgroup_mounts(mounts, version, controllers):
            yield from ((directory, version) for directory in _visible(root, mount_point, mount_root, path))


def _cgroup_mounts(mounts: str, version: int, controllers: str) -> Iterator[tuple[str, str]]:
    """Mount point and the cgroup that is seen there, for one hierarchy."""
    for line in mounts.splitlines():
        # Optional fields, as many as there are, end with a lone dash.
        place, _, kind = line.partition(" - ")
        fields, types = place.split(" "), kind.split(" ")
        if len(fields) < 5 or len(types) < 3 or types[0] != ("cgroup2" if version == 2 else "cgroup"):
            continue
        if version == 1 and not set(controllers.split(",")) <= set(types[2].split(",")):
            continue
        yield _unescaped(fields[4]), _unescaped(fields[3])


def _unescaped(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), field)


def _visible(root: Path, mount_point: str, mount_root: str, path: str) -> Iterator[Path]:
    """The directory of cgroup `path` and those above it, up to the mount point."""
    base = root / mount_point.lstrip("/")
    try:
        below = PurePosixPath(path).relative_to(mount_root)
    except ValueError:
        # The path is told from outside of this container; the mount shows the container's own cgroup.
        below = PurePosixPath()
    if ".." in below.parts or not (base / below).is_dir():
        below = PurePosixPath()
    yield from (base / part for part in (below, *below.parents))


def _read(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        return None


def _quota(directory: Path, version: int) -> float | None:
    """CPUs' worth of time that a cgroup may use, `None` without a limit."""
    if version == 2:
        text = _read(directory / "cpu.max")
        if text is None or text.startswith("max "):
            return None
        match = re.fullmatch(r"(\d+) (\d+)", text)
        limit, period = match.groups() if match else (text, "")
        file = directory / "cpu.max"
    else:
        file = directory / "cpu.cfs_quota_us"
        limit, period = _read(file) or "-1", _read(directory / "cpu.cfs_period_us") or ""
        if limit == "-1":
            return None
    if not limit.isdecimal() or not period.isdecimal() or int(period) == 0:
        raise ValueError(f"{file}: expected a quota and a period in microseconds, found {limit!r} and {period!r}")
    return int(limit) / int(period)


def _cpuset(directory: Path, version: int) -> frozenset[int] | None:
    """CPUs that a cgroup may use, `None` without a limit."""
    names = ["cpuset.cpus.effective"] if version == 2 else ["cpuset.effective_cpus", "cpuset.cpus"]
    for name in names:
        text = _read(directory / name)
        # An empty list means that the cgroup has set nothing of its own.
        if text:
            return _cpu_list(directory / name, text)
    return None


def _cpu_list(file: Path, text: str) -> frozenset[int]:
    cpus: set[int] = set()
    for part in text.split(","):
        match = _CPU_RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{file}: expected a list of CPUs such as 0-3,8, found {text!r}")
        first = int(match[1])
        cpus.update(range(first, int(match[2] or first) + 1))
    return frozenset(cpus)
