"""Real process groups on this machine: one process for each rank, gloo over the loopback, a file as the meeting point."""

import os
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch_support import fast_start

import dataset_rt as drt

Outcome = tuple[str, Any]


def run_ranks(
    world_size: int,
    meeting: Path,
    work: Callable[..., Any],
    *arguments: Any,
    context: Any = None,
    patience: float = 100,
    leave_together: bool = True,
) -> list[Outcome]:
    """Call `work(rank, *arguments)` on every rank, and return what each returned, or the exception it ended with.

    Ranks leave together unless it is to be seen that none of them needs what another one holds.
    """
    context = context or fast_start()
    ends = []
    for rank in range(world_size):
        here, there = context.Pipe(duplex=False)
        process = context.Process(
            target=_rank, args=(there, rank, world_size, meeting, work, arguments, leave_together)
        )
        process.start()
        there.close()
        ends.append((process, here))
    outcomes = []
    try:
        for process, here in ends:
            assert here.poll(patience), f"no answer from {process.name}"
            outcomes.append(here.recv())
    finally:
        for process, _ in ends:
            if len(outcomes) < world_size:
                process.kill()
            process.join()
    return outcomes


def _rank(
    end: Any,
    rank: int,
    world_size: int,
    meeting: Path,
    work: Callable[..., Any],
    arguments: Any,
    leave_together: bool,
) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    os.environ.pop("LOCAL_WORLD_SIZE", None)
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=world_size, timeout=timedelta(seconds=90)
    )
    try:
        outcome = ("returned", work(rank, *arguments))
    except Exception as error:
        traceback.print_exc()
        outcome = (type(error).__name__, str(error))
    if leave_together:
        dist.barrier()
    end.send(outcome)
    dist.destroy_process_group()


def open_caches(paths: list[Path]) -> drt.CachedDataset:
    runtime = drt.DatasetRuntime(num_workers=1)
    return runtime.cached_dataset(paths, reader_config=drt.ReaderConfig(seed=0, shuffle=False))
