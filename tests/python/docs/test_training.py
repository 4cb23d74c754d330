"""Runs the examples that train with PyTorch as a user would, and reads what they say."""

import re
from pathlib import Path

import pytest
from support import run_example

pytest.importorskip("torch.utils.data")


def accuracy(output: str) -> tuple[float, int]:
    found = re.search(r"test accuracy: ([0-9.]+)% of (\d+) samples", output)
    assert found is not None, output
    return float(found[1]), int(found[2])


def test_a_classifier_learns_from_a_cache(tmp_path: Path) -> None:
    output = run_example(tmp_path, "train_torch.py")
    percent, tested = accuracy(output)
    assert percent > 95
    assert tested == 257
    assert "8 epochs of 49 batches, 392 steps" in output


def test_two_ranks_learn_in_step_and_test_every_sample_once(tmp_path: Path) -> None:
    output = run_example(tmp_path, "train_ddp.py")
    percent, tested = accuracy(output)
    assert percent > 95
    assert tested == 257
    # 1,540 samples: 24 whole batches of 32 for each of two ranks.
    assert "12 epochs of 24 batches; steps of each rank: [288, 288]" in output
    # 257 samples do not divide by two.
    assert "samples read for that: 258" in output
