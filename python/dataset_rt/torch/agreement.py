"""Agreement of all ranks of a process group on one loader, by way of the group's store: the same for every backend."""

import json
import time
from dataclasses import dataclass
from typing import Any, NoReturn

import torch.distributed as dist
from torch.distributed import distributed_c10d

# How long a rank waits for the others.
PATIENCE_SECONDS = 60.0
# How long it stays, once all is decided, for others that still read: the store may live in this process.
_FAREWELL_SECONDS = 10.0
_COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Group:
    """The default process group, if there is one."""

    rank: int
    world_size: int

    @classmethod
    def current(cls) -> "Group | None":
        """The initialised default group; `None` outside of one."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return None


def agree(
    group: Group,
    record: dict[str, Any] | None,
    refusal: BaseException | None,
    reason: str = "arguments were refused",
) -> list[dict[str, Any]]:
    """Exchange what each rank is about to construct, and return it rank by rank.

    Fields that begin with an underscore may differ. `record` is `None` on a rank whose arguments were refused, with
    the reason; it waits for the others like everybody else, so that they learn why. `reason` says what went wrong there.

    Raises:
        ValueError: Ranks differ, or one has refused.
        RuntimeError: A rank did not come in time.
    """
    exchange = _Exchange.next(group)
    mine = {"record": record, "refusal": None if refusal is None else f"{type(refusal).__name__}: {refusal}"}
    answers = exchange.run(json.dumps(mine, sort_keys=True))
    if refusal is not None:
        raise refusal
    refused = [
        f"rank {rank}: {answer['refusal']}" for rank, answer in enumerate(answers) if answer["refusal"] is not None
    ]
    if refused:
        raise ValueError(f"no loader was constructed on any rank, because {reason} on {'; '.join(refused)}")
    records = [answer["record"] for answer in answers]
    differences = _differences(records)
    if differences:
        raise ValueError(
            f"all ranks must construct the same loader, but they differ in {'; '.join(differences)}; "
            "pass the same arguments, table and caches on every rank, and construct loaders in the same order"
        )
    return records


def _differences(records: list[dict[str, Any]]) -> list[str]:
    found = []
    for name in records[0]:
        values = [record.get(name) for record in records]
        if not name.startswith("_") and any(value != values[0] for value in values):
            told = ", ".join(f"{value} on rank {rank}" for rank, value in enumerate(values))
            found.append(f"{name}: {told}")
    return found


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One meeting of all ranks. Each rank numbers its meetings for itself."""

    store: Any
    group: Group
    number: int

    @classmethod
    def next(cls, group: Group) -> "_Exchange":
        store = distributed_c10d._get_default_store()
        # Counted in the store, and so for as long as what stands under the numbers.
        return cls(store, group, store.add(f"dataset_rt/loader/met/{group.rank}", 1) - 1)

    def key(self, name: object, number: int | None = None) -> str:
        return f"dataset_rt/loader/{self.number if number is None else number}/{name}"

    def run(self, mine: str) -> list[dict[str, Any]]:
        ranks = range(self.group.world_size)
        self.store.set(self.key(self.group.rank), mine)
        deadline = time.monotonic() + PATIENCE_SECONDS
        missing = self._wait([self.key(rank) for rank in ranks], deadline, self.key("verdict"))
        verdict = ",".join(str(rank) for rank in ranks if self.key(rank) in missing) or _COMPLETE
        # The first verdict counts, for those who come later too.
        verdict = self.store.compare_set(self.key("verdict"), "", verdict).decode()
        if verdict != _COMPLETE:
            self._part()
            self._too_late(verdict)
        answers = [json.loads(self.store.get(self.key(rank))) for rank in ranks]
        self._part()
        self._forget(self.number - 1)
        return answers

    def _wait(self, keys: list[str], deadline: float, decided: str | None = None) -> list[str]:
        """Wait until all keys are there, or the key `decided`, and return those that never came."""
        pause = 0.001
        while not self.store.check(keys):
            if time.monotonic() >= deadline or (decided is not None and self.store.check([decided])):
                return [key for key in keys if not self.store.check([key])]
            # Short pauses of our own keep Ctrl-C working, which the store's waiting does not.
            time.sleep(pause)
            pause = min(0.05, pause * 2)
        return []

    def _part(self) -> None:
        """Leave when everybody who came has read everything."""
        self.store.set(self.key(f"{self.group.rank}/left"), "")
        try:
            came = [rank for rank in range(self.group.world_size) if self.store.check([self.key(rank)])]
            self._wait([self.key(f"{rank}/left") for rank in came], time.monotonic() + _FAREWELL_SECONDS)
        except dist.DistError:
            # The store is gone with the rank that kept it, which has seen everybody leave.
            return

    def _forget(self, number: int) -> None:
        """Remove an earlier meeting from the store: whoever is at this one has left that one."""
        if self.group.rank == 0 and number >= 0:
            ranks = range(self.group.world_size)
            for name in [*ranks, *(f"{rank}/left" for rank in ranks), "verdict"]:
                self.store.delete_key(self.key(name, number))

    def _too_late(self, missing: str) -> NoReturn:
        several = "," in missing
        raise RuntimeError(
            f"rank{'s' if several else ''} {missing.replace(',', ', ')} did not construct loader {self.number} of this group within "
            f"{PATIENCE_SECONDS:g} s of the first; every rank must construct its loaders in the same order"
        )
