"""B6: iterators shared by threads give each sample to one of them."""

import threading
from pathlib import Path

import pytest
from support import Listed, opened, write

import dataset_rt as drt


@pytest.mark.parametrize("size", [8, 200_000])
def test_b06_each_sample_goes_to_one_thread(runtime: drt.DatasetRuntime, tmp_path: Path, size: int) -> None:
    count = 20_000 if size == 8 else 300
    rows = [(row.to_bytes(size, "little"), {"number": row}) for row in range(count)]
    iterator = iter(opened(runtime, write(runtime, tmp_path, Listed("a", rows))))
    parts: list[list[int]] = [[] for _ in range(4)]
    start = threading.Barrier(len(parts))

    def consume(part: list[int]) -> None:
        start.wait()
        for sample in iterator:
            assert int.from_bytes(sample.data, "little") == sample.metadata["number"]
            part.append(sample.sample_id)

    workers = [threading.Thread(target=consume, args=(part,)) for part in parts]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(number for part in parts for number in part) == list(range(count))
    # What one thread got, it got in order.
    assert all(part == sorted(part) for part in parts)
    assert next(iterator, None) is None


def test_b06_a_thread_that_keeps_taking_samples_does_not_keep_others_waiting(
    runtime: drt.DatasetRuntime, tmp_path: Path
) -> None:
    dataset = opened(
        runtime, write(runtime, tmp_path, Listed("a", [(bytes(200_000), {"number": 0})] * 30)), shuffle=True
    )
    dataset.set_epoch_len(2**40)
    iterator = iter(dataset)
    taken, enough = 0, threading.Event()

    def hog() -> None:
        nonlocal taken
        while taken < 20_000 and not enough.is_set():
            next(iterator)
            taken += 1

    thread = threading.Thread(target=hog)
    thread.start()
    for _ in range(20):
        next(iterator)
    enough.set()
    thread.join()
    assert taken < 20_000
