"""Directories for what a loader exports: named after their owner, and removed with it or after its death."""

import json
import os
import platform
import secrets
import shutil
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataset_rt.dataset import CachedDataset

PREFIX = "dataset_rt-loader"
POPULATION_FILE = "population.bin"


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, told apart from all others on all machines that may share a directory."""

    host: str
    boot: str
    namespace: str
    pid: int
    started: str

    @classmethod
    def current(cls) -> "Owner":
        """This process."""
        host = "".join(letter if letter.isalnum() or letter in ".-_" else "_" for letter in platform.node())
        return cls(host or "unknown", _boot(), _namespace(), os.getpid(), _started(os.getpid()) or "unknown")

    def directory_name(self) -> str:
        """A name that no other call gives."""
        parts = (PREFIX, self.host, self.boot, self.namespace, str(self.pid), self.started, secrets.token_hex(6))
        return "~".join(parts)

    @classmethod
    def of_directory(cls, name: str) -> "Owner | None":
        """Whose directory this is, `None` if no loader made it."""
        parts = name.split("~")
        if len(parts) != 7 or parts[0] != PREFIX or not parts[4].isdecimal():
            return None
        return cls(parts[1], parts[2], parts[3], int(parts[4]), parts[5])

    def is_dead(self, observer: "Owner") -> bool:
        """Whether `observer` knows that this process has ended; in doubt it has not."""
        if self.host != observer.host or "unknown" in (self.boot, observer.boot, self.started):
            return False
        if self.boot != observer.boot:
            return True
        # Process numbers mean nothing in another namespace.
        return self.namespace == observer.namespace and _started(self.pid) != self.started


def _boot() -> str:
    return _read("/proc/sys/kernel/random/boot_id").strip() or "unknown"


def _namespace() -> str:
    try:
        return Path("/proc/self/ns/pid").readlink().name.strip("pid:[]") or "unknown"
    except OSError:
        return "unknown"


def _started(pid: int) -> str:
    """When a process started, in ticks since boot; empty if there is none."""
    # The name of the program stands in parentheses and may hold anything.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def _read(file: str) -> str:
    try:
        return Path(file).read_text(errors="replace")
    except OSError:
        return ""


class Artifacts:
    """The directory of one loader."""

    def __init__(self, work_dir: Path | None) -> None:
        owner = Owner.current()
        if work_dir is None:
            base = Path(tempfile.gettempdir())
            _sweep(base, owner)
        else:
            base = work_dir
        self.path: Path = base.resolve() / owner.directory_name()
        self.path.mkdir(mode=0o700 if work_dir is None else 0o777)
        self._managed = work_dir is None

    def keep(self) -> "Kept":
        """Let a managed directory go with the last reference to what this returns, or with the process."""
        kept = Kept()
        if self._managed:
            weakref.finalize(kept, _remove, self.path, os.getpid())
        return kept

    def discard(self) -> None:
        """Remove the directory now: the loader will not come to be."""
        _remove(self.path, os.getpid())


class Kept:
    """Holds the directory of a loader. Copies in this process hold it too; what is pickled does not."""

    def __deepcopy__(self, memo: object) -> "Kept":
        return self

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


def _remove(path: Path, owner: int) -> None:
    # Forked children inherit the finaliser, but not the ownership.
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


def _sweep(base: Path, observer: Owner) -> None:
    """Remove what loaders of this user left in the temporary directory when they were killed."""
    for directory in base.glob(f"{PREFIX}~*"):
        owner = Owner.of_directory(directory.name)
        try:
            mine = directory.lstat().st_uid == os.geteuid()
        except OSError:
            continue
        if mine and owner is not None and owner.is_dead(observer):
            shutil.rmtree(directory, ignore_errors=True)


def export(
    dataset: "CachedDataset",
    directory: Path,
    *,
    native_threads: int,
    weighted: bool,
    order_seed: int | None,
    parts: list[tuple[int, int]],
) -> tuple[Path, int]:
    """Write everything that readers of these parts need; return the path of the configuration and the number of rows."""
    native = dataset._native
    population = str(directory / POPULATION_FILE)
    rows = native.export_population(population, weighted=weighted, order_seed=order_seed, parts=parts)
    # Last: where there is a configuration, everything else is whole.
    return native.dump_config(str(directory), num_workers=native_threads), rows


@dataclass(frozen=True, slots=True)
class ExportedConfig:
    """What a reader takes from an exported configuration."""

    cache_paths: list[str]
    prefetch_size: int

    @classmethod
    def load(cls, path: Path) -> "ExportedConfig":
        """Read the file that `export` wrote."""
        config = json.loads(path.read_text(encoding="utf-8"))
        return cls(config["cache_paths"], config["reader_config"]["prefetch_size"])
