"""Memory in which batches come from loading workers: large blocks are not taken from the system again each time."""

import platform
import sys

import pytest

pytest.importorskip("torch.utils.data")

from support import numbered, run_python, write

# What a pipe does for a large message: room for all that is left, of which 64 KiB come at a time.
PROGRAM = """
import os, resource, sys
import dataset_rt as drt

runtime = drt.DatasetRuntime(num_workers=1)
dataset = runtime.cached_dataset([sys.argv[1]], reader_config=drt.ReaderConfig(seed=1))
loader = dataset.to_torch_dataloader(
    batch_size=int(sys.argv[2]), collate_fn=list, num_workers=1, multiprocessing_context="spawn", verbose=False
)
readable, writable = os.pipe()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    os.write(writable, bytes(1 << 16))
    os.read(readable, 8 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc",
    reason="other allocators decide themselves",
)
@pytest.mark.parametrize("batch_size", [1, 64])
def test_f07_large_batches_are_received_in_memory_that_was_used_before(runtime, tmp_path, batch_size):
    (path,) = write(runtime, tmp_path, numbered("a", 64, size=4096))
    result = run_python(PROGRAM, str(path), str(batch_size))
    faults = int(result.stdout)
    # 16 pages come each time.
    assert (faults < 800) == (batch_size * 4096 >= 1 << 17), result.stdout
