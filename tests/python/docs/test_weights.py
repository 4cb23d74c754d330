"""Runs the examples about weights as a user would, and holds what they say against what weights promise."""

import re
from pathlib import Path

from support import run_example


def numbers(output: str, heading: str, row: str) -> list[int]:
    """What a row below a heading says about the labels 0 to 9."""
    below = output[output.index(heading) :]
    [line] = [line for line in below.splitlines() if line.startswith(f"  {row} ")][:1]
    found = {int(label): int(number) for label, number in re.findall(r"(\d): (\d+)", line)}
    return [found[label] for label in range(10)]


def test_classes_are_drawn_by_their_size_to_the_power_that_is_left(tmp_path: Path) -> None:
    output = run_example(tmp_path, "class_balance.py")
    sizes = numbers(output, "", "samples")
    assert max(sizes) > 5 * min(sizes)
    for heading, power in (("as they are", 1.0), ("halfway", 0.5), ("balanced", 0.0)):
        draws = numbers(output, heading, "draws")
        assert sum(draws) == 20_000
        shares = [size**power for size in sizes]
        for drawn, share in zip(draws, shares, strict=True):
            expected = 20_000 * share / sum(shares)
            # Five standard deviations, and the seed is fixed.
            assert abs(drawn - expected) < 5 * expected**0.5


def test_hard_samples_are_drawn_more_often_and_learned_better(tmp_path: Path) -> None:
    output = run_example(tmp_path, "hard_examples.py")
    alike, mined = (float(loss) for loss in re.findall(r"worst twentieth ([0-9.]+),", output))
    assert mined < 0.95 * alike
    weights = [float(weight) for weight in re.findall(r"train ┆ ([0-9.]+)", output)]
    assert len(weights) == 5
    assert weights == sorted(weights, reverse=True)
    assert weights[0] > 1
