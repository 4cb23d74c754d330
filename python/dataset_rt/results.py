"""Expected outcomes as values: `Ok` or `Err`, and what a manifest migration reports in them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeAlias, TypeVar

T = TypeVar("T")
E = TypeVar("E")


@dataclass(frozen=True)
class Ok(Generic[T]):
    """The operation did what was asked; `value` is what it made."""

    value: T


@dataclass(frozen=True)
class Err(Generic[E]):
    """The operation failed in a foreseen way; `error` says how."""

    error: E


Result: TypeAlias = Ok[T] | Err[E]


@dataclass(frozen=True)
class ManifestUpdateEntry:
    """One manifest that was replaced or needed no change.

    `durability_unknown` means that the new manifest is in place but its directory could not be synced.
    """

    path: Path
    cache_id: int
    status: Literal["updated", "unchanged", "durability_unknown"]


@dataclass(frozen=True)
class ManifestUpdateReport:
    """A finished migration: one entry per cache, in the order of the dataset."""

    entries: tuple[ManifestUpdateEntry, ...]


@dataclass(frozen=True)
class AbsentManifestTarget:
    """Stands where a path would, for a request that was refused before any manifest was looked at."""

    reason: str


@dataclass(frozen=True)
class ManifestUpdateError:
    """A migration that stopped: where, why, and which manifests had been handled by then."""

    path: Path | AbsentManifestTarget
    message: str
    entries: tuple[ManifestUpdateEntry, ...]
