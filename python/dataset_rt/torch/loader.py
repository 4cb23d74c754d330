"""From a dataset to a `torch.utils.data.DataLoader`: resolve, agree, export, construct. Imports torch."""

import json
import os
import secrets
from contextlib import ExitStack
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from torch.utils.data import default_collate

from dataset_rt.torch import agreement, arguments, artifacts, resources
from dataset_rt.torch.diagnostics import log_event, warn
from dataset_rt.torch.passes import CachedDataLoader
from dataset_rt.torch.plan import Plan, order_seed
from dataset_rt.torch.worker import Callback, LoaderDataset, WorkerInit

if TYPE_CHECKING:
    from dataset_rt.dataset import CachedDataset
    from dataset_rt.torch.arguments import Arguments

_RANDOM_SEED = "_random_seed"
# Seconds. Torch waits by way of functions that take no more milliseconds than fit into 31 bits.
_LONGEST_TIMEOUT = 2_000_000.0


def build(dataset: "CachedDataset", **given: Any) -> CachedDataLoader:
    """Construct the loader of one rank. In a process group all ranks do this together."""
    group = agreement.Group.current()
    with ExitStack() as undo:

        def prepare() -> tuple["Arguments", int, int, artifacts.Artifacts]:
            checked, workers, threads = _resolve(dataset, given, group)
            exported = artifacts.Artifacts(checked.work_dir)
            undo.callback(exported.discard)
            return checked, workers, threads, exported

        loader: CachedDataLoader | None = None
        if group is None:
            loader = _construct(dataset, *prepare(), group, secrets.randbits(64))
        else:
            prepared, record, refusal = None, None, None
            try:
                prepared = prepare()
                record = _record(dataset, prepared[0])
            except Exception as error:
                # Whatever one rank cannot do, all should hear of.
                refusal = error
            random_seed = agreement.agree(group, record, refusal)[0][_RANDOM_SEED]
            assert prepared is not None, "a refusal has been raised"
            refusal = None
            try:
                loader = _construct(dataset, *prepared, group, random_seed)
            except Exception as error:
                refusal = error
            # Nobody may go on alone to where the others are waited for.
            agreement.agree(group, {}, refusal, "constructing it failed")
            assert loader is not None, "a refusal has been raised"
        undo.pop_all()
        return loader


def _resolve(
    dataset: "CachedDataset", given: dict[str, Any], group: agreement.Group | None
) -> tuple["Arguments", int, int]:
    """Arguments, and how many loading workers and native threads there will be."""
    checked = arguments.check(inherited_samples=len(dataset), **given)
    world_size = None if group is None else group.world_size
    workers, threads = checked.num_workers, checked.native_num_workers
    # The launcher's word is checked wherever there is a group, so that a wrong one does not wait for another machine.
    asks = world_size is not None or workers == "auto" or threads == "auto"
    local_ranks = resources.local_ranks(os.environ, world_size) if asks else 1
    if workers == "auto" or threads == "auto":
        budget = resources.observe(resources.affinity())
        for problem in budget.problems:
            warn(
                f"a CPU limit cannot be read, so one CPU is assumed: {problem}; set num_workers and native_num_workers",
                RuntimeWarning,
            )
        if workers == "auto":
            workers = resources.auto_workers(budget.cpus, local_ranks)
        if threads == "auto":
            threads = resources.auto_threads(budget.cpus, local_ranks, max(1, workers))
    arguments.check_for_workers(checked, workers)
    return checked, workers, threads


def _record(dataset: "CachedDataset", checked: "Arguments") -> dict[str, Any]:
    """What must be the same on all ranks, and this rank's offer for a random seed."""
    return {
        "samples_per_epoch": checked.samples,
        "batch_size": checked.batch_size,
        "drop_last": checked.drop_last,
        "shuffle": checked.shuffle,
        "worker_partition": checked.partition,
        "seed": checked.seed,
        "table": dataset._native.table_digest(),
        "caches": _caches_digest(dataset),
        _RANDOM_SEED: secrets.randbits(64),
    }


def _caches_digest(dataset: "CachedDataset") -> str:
    """One word for ids and content of all caches, wherever they are and in whatever order they were given."""
    contents = []
    for position, path in enumerate(dataset.cache_paths):
        manifest = json.loads((path / "manifest.json").read_bytes())
        sums = [
            # Where a manifest has none, the position is the id.
            str(manifest["cache_id"] if manifest["format_version"] == 3 else position),
            manifest["metadata_sha256"],
            manifest["index_sha256"],
            *(shard["sha256"] for shard in manifest["shards"]),
        ]
        contents.append(" ".join(sums))
    return sha256("\n".join(sorted(contents)).encode()).hexdigest()


def _construct(
    dataset: "CachedDataset",
    checked: "Arguments",
    workers: int,
    threads: int,
    exported: artifacts.Artifacts,
    group: agreement.Group | None,
    random_seed: int,
) -> CachedDataLoader:
    rank, world_size = (0, 1) if group is None else (group.rank, group.world_size)
    seed = None if not checked.shuffle else random_seed if checked.seed == "random" else checked.seed

    rows = dataset._native.row_count()
    plan = Plan(checked.samples, rows, world_size, checked.batch_size, checked.drop_last, checked.partition, seed)
    consumers = max(1, workers)
    dataset._native.expect_batches(plan.declared_batch_size)
    config, exported_rows = artifacts.export(
        dataset,
        exported.path,
        native_threads=threads,
        weighted=checked.shuffle,
        order_seed=order_seed(seed) if seed is not None and plan.reordered(consumers) else None,
        parts=[(span.start, span.stop) for span in plan.populations(rank, consumers)],
    )
    if exported_rows != rows:
        raise RuntimeError("the table was replaced while a loader was constructed from it; construct the loader again")
    persistent = workers > 0 if checked.persistent_workers == "auto" else checked.persistent_workers
    loader_dataset = LoaderDataset(
        config,
        plan,
        rank,
        workers,
        threads,
        checked.sample_transform_fn,
        exported.keep(),
        persistent=persistent,
        verbose=checked.verbose,
    )
    loader = CachedDataLoader(loader_dataset, **_torch_arguments(checked, plan, workers, persistent=persistent))
    _warn(checked, plan, rank, workers, persistent=persistent, in_group=group is not None)
    if checked.verbose:
        _log_ready(dataset, checked, loader, threads)
    return loader


def _torch_arguments(checked: "Arguments", plan: Plan, workers: int, *, persistent: bool) -> dict[str, Any]:
    given: dict[str, Any] = {
        "batch_size": plan.declared_batch_size,
        "collate_fn": default_collate if checked.collate_fn is None else Callback("collate_fn", checked.collate_fn),
        "drop_last": checked.drop_last,
        "pin_memory": checked.pin_memory,
        "num_workers": workers,
    }
    if workers > 0:
        context = checked.multiprocessing_context
        given |= {
            "timeout": min(checked.timeout, _LONGEST_TIMEOUT),
            "worker_init_fn": WorkerInit(checked.worker_init_fn),
            "multiprocessing_context": None if context == "inherit" else context,
            "prefetch_factor": 2 if checked.prefetch_factor == "auto" else checked.prefetch_factor,
            "persistent_workers": persistent,
        }
    return given


def _warn(checked: "Arguments", plan: Plan, rank: int, workers: int, *, persistent: bool, in_group: bool) -> None:
    if workers > 0 and not persistent:
        warn(
            "persistent_workers=False: every pass starts new workers, which begin at the first window of their streams, so each "
            "pass repeats the same samples; leave persistent_workers at 'auto' to go on from pass to pass",
            UserWarning,
        )
    surplus = plan.effective_samples - plan.samples
    if in_group and rank == 0 and surplus:
        consequence = f"{surplus} repeated as padding" if surplus > 0 else f"{-surplus} left out"
        warn(
            f"{plan.samples} samples per epoch do not divide evenly among {plan.world_size} ranks with "
            f"batch_size={plan.batch_size} and drop_last={plan.drop_last}: each rank takes {plan.budget} in {plan.batches} batches, "
            f"{plan.effective_samples} in all ({consequence})",
            UserWarning,
        )


def _log_ready(dataset: "CachedDataset", checked: "Arguments", loader: CachedDataLoader, threads: int) -> None:
    share, disabled = loader.dataset, "disabled"
    plan, workers = share.plan, share.num_workers
    seeds = [consumer.seed for consumer in plan.consumers(share.rank, max(1, workers))]
    log_event(
        "loader_ready",
        pid=os.getpid(),
        rank=share.rank,
        seed=plan.seed,
        worker_seeds=disabled if plan.seed is None else seeds,
        num_workers=workers,
        native_threads_per_consumer=threads,
        partition=plan.partition,
        persistent=share.persistent,
        prefetch_factor=disabled if workers == 0 else loader.prefetch_factor,
        native_prefetch=dataset.reader_config.prefetch_size,
        samples=plan.samples,
        samples_per_rank=plan.budget,
        batch_size=plan.batch_size,
        world_size=plan.world_size,
        shuffle=checked.shuffle,
        multiprocessing_context=disabled if workers == 0 else arguments.start_method(checked.multiprocessing_context),
    )
