"""The draw stream against its definition, and the definition's generator against numpy's."""

import json
from pathlib import Path

import draw_reference as reference
import numpy as np
import pytest

GOLDEN = json.loads((Path(__file__).parents[2] / "fixtures" / "draws.json").read_text(encoding="utf-8"))


def test_d06_golden_vectors_follow_from_the_definition() -> None:
    assert reference.golden() == GOLDEN


@pytest.mark.parametrize("seed", [0, 7, 2**63 + 5, 2**64 - 1])
@pytest.mark.parametrize("position", [0, 5, 2**64 * 4 - 1, 2**64 * 4, 2**127 + 6])
@pytest.mark.parametrize("purpose", [reference.UNIFORM, reference.WEIGHTED])
def test_d06_words_are_those_of_numpy(seed: int, position: int, purpose: int) -> None:
    """numpy counts up before it draws: it makes block b from the counter b - 1, all 256 bits of it."""
    words = reference.words(seed, purpose, position)
    block, place = divmod(position, 4)
    for attempt in range(3):
        counter = block + attempt * 2**128 + purpose * 2**192
        key = np.array([seed, reference.DOMAIN], dtype=np.uint64)
        limbs = np.array(
            [(counter - 1) % 2**256 >> shift & (2**64 - 1) for shift in (0, 64, 128, 192)], dtype=np.uint64
        )
        theirs = np.random.Philox(counter=limbs, key=key).random_raw(4)
        assert next(words) == int(theirs[place])


def test_d06_the_alias_table_gives_every_row_its_length() -> None:
    weights = [0.5, 3.25, 1e-3, 7.0, 7.0, 1.0, 1e-30, 2.0]
    table = reference.AliasTable(weights)
    held = [0] * len(weights)
    for row, (threshold, alias) in enumerate(table.cells):
        held[row] += threshold
        held[alias] += table.capacity - threshold
    units = len(weights) * table.capacity
    for weight, length in zip(weights, held, strict=True):
        assert abs(length - weight / sum(weights) * units) <= max(2, length * 1e-15)
