"""Train the classifier of train_torch.py with two processes that average their gradients, and test it with both.

Run it by hand: `python examples/train_ddp.py [--epochs N] [--ranks N]`. Both processes run on this machine, over gloo.
"""

import argparse
import multiprocessing
import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from train_torch import classifier, decode, open_split, train_epoch

import dataset_rt as drt

Identity = tuple[int, int]


def decode_with_identity(sample: drt.CachedSample) -> tuple[Tensor, int, int, int]:
    """What `decode` gives, and which sample it is."""
    pixels, label = decode(sample)
    return pixels, label, sample.cache_id, sample.sample_id


def train(rank: int, ranks: int, base: Path, epochs: int) -> None:
    """Do what one rank does."""
    torch.set_num_threads(1)
    # With torchrun, `init_process_group("gloo")` alone would do.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{base / 'meeting'}", rank=rank, world_size=ranks)

    # All ranks may write the same cache at once: one of them publishes it, and all of them read it.
    runtime = drt.DatasetRuntime(num_workers=1)
    # Every rank constructs the same loaders in the same order. They agree on a seed, and on how many steps there are.
    training = open_split(runtime, "train", base, shuffle=True).to_torch_dataloader(
        batch_size=32, sample_transform_fn=decode, seed=7, drop_last=True, num_workers=0, verbose=False
    )
    testing = open_split(runtime, "test", base, shuffle=False).to_torch_dataloader(
        batch_size=64, sample_transform_fn=decode_with_identity, shuffle=False, num_workers=0, verbose=False
    )

    torch.manual_seed(0)
    model = DistributedDataParallel(classifier())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    steps = sum(train_epoch(model, optimizer, training) for _ in range(epochs))

    # Where samples do not divide by ranks, a few are read twice so that ranks stay in step. Known by their identity,
    # they count once.
    verdicts: dict[Identity, bool] = {}
    visits = 0
    with torch.no_grad():
        for pixels, labels, cache_ids, sample_ids in testing:
            right = model(pixels).argmax(dim=1) == labels
            verdicts.update(zip(zip(cache_ids.tolist(), sample_ids.tolist(), strict=True), right.tolist(), strict=True))
            visits += len(labels)
    gathered: list[tuple[int, int, dict[Identity, bool]]] = [(0, 0, {})] * ranks
    dist.all_gather_object(gathered, (steps, visits, verdicts))
    if rank == 0:
        together = {identity: right for _, _, part in gathered for identity, right in part.items()}
        print(f"{epochs} epochs of {len(training)} batches; steps of each rank: {[part[0] for part in gathered]}")
        print(f"test accuracy: {sum(together.values()) / len(together):.1%} of {len(together)} samples")
        print(f"samples read for that: {sum(part[1] for part in gathered)}")
    dist.destroy_process_group()


def main() -> None:
    """Parse the command line and start the ranks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    # A process that has started threads should not be forked.
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="dataset_rt_") as base:
        ranks = [
            context.Process(target=train, args=(rank, arguments.ranks, Path(base), arguments.epochs))
            for rank in range(arguments.ranks)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
    if any(process.exitcode for process in ranks):
        raise SystemExit("a rank has failed")


if __name__ == "__main__":
    main()
