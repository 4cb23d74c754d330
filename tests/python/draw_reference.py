"""The draw stream as docs/decisions/0003-draw-stream.md defines it, written for reading and not for speed.

`python tests/python/draw_reference.py` writes the golden vectors, which the Rust tests hold against the library.
"""

import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import count

WORD = 2**64
DOMAIN = int.from_bytes(b"drt drw\x01", "big")
UNIFORM, WEIGHTED = 0, 1


def philox4x64(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    a, b, c, d = counter
    key_0, key_1 = key
    for _ in range(10):
        high_a, low_a = divmod(a * 0xD2E7470EE14C6C93, WORD)
        high_c, low_c = divmod(c * 0xCA5A826395121157, WORD)
        a, b, c, d = high_c ^ b ^ key_0, low_c, high_a ^ d ^ key_1, low_a
        key_0, key_1 = (key_0 + 0x9E3779B97F4A7C15) % WORD, (key_1 + 0xBB67AE8584CAA73B) % WORD
    return a, b, c, d


def words(seed: int, purpose: int, position: int) -> Iterator[int]:
    """The random word of a draw position, and those that replace it when it is refused."""
    block, place = divmod(position, 4)
    high, low = divmod(block, WORD)
    for attempt in count():
        yield philox4x64((low, high, attempt, purpose), (seed, DOMAIN))[place]


def accepted(candidates: Iterator[int], rows: int) -> tuple[int, int]:
    """A row with equal probability, and what the word says beyond it."""
    for word in candidates:
        row, rest = divmod(word * rows, WORD)
        if rest >= WORD % rows:
            return row, rest
    raise AssertionError


def uniform_draw(rows: int, seed: int, position: int) -> int:
    return accepted(words(seed, UNIFORM, position), rows)[0]


class AliasTable:
    """Thresholds and aliases of cells with one capacity."""

    def __init__(self, weights: list[float]) -> None:
        rows = len(weights)
        exact = [Fraction(weight) for weight in weights]
        total = sum(exact)
        magnitude = total.numerator.bit_length() - total.denominator.bit_length()
        scale = Fraction(2) ** (61 - magnitude)
        assert 2**61 <= total * scale < 2**62
        lengths = [max(1, int(weight * scale)) for weight in exact]
        self.capacity = -(-sum(lengths) // rows)
        for row in range(self.capacity * rows - sum(lengths)):
            lengths[row] += 1
        self.cells = self._pair(lengths)

    def _pair(self, left: list[int]) -> list[tuple[int, int]]:
        """Give every cell that its row does not fill an alias. `left` is what rows have not given away yet."""
        capacity = self.capacity
        cells = [(capacity, row) for row in range(len(left))]
        heavy_rows = iter([row for row, length in enumerate(left) if length > capacity])
        heavy = next(heavy_rows)
        for light in [row for row, length in enumerate(left) if length < capacity]:
            while left[heavy] <= capacity:
                heavy = self._fill_heavy(cells, left, heavy, heavy_rows)
            cells[light] = left[light], heavy
            left[heavy] -= capacity - left[light]
        while left[heavy] < capacity:
            heavy = self._fill_heavy(cells, left, heavy, heavy_rows)
        return cells

    def _fill_heavy(self, cells: list[tuple[int, int]], left: list[int], heavy: int, heavy_rows: Iterator[int]) -> int:
        following = next(heavy_rows)
        if left[heavy] < self.capacity:
            cells[heavy] = left[heavy], following
            left[following] -= self.capacity - left[heavy]
        return following

    def draw(self, seed: int, position: int) -> int:
        row, level = accepted(words(seed, WEIGHTED, position), len(self.cells))
        threshold, alias = self.cells[row]
        return row if level * self.capacity // WORD < threshold else alias


class Stream:
    """What shuffled readers of a table with these weights emit, by row."""

    def __init__(self, weights: list[float]) -> None:
        self.rows = len(weights)
        self.table = AliasTable(weights) if len(set(weights)) > 1 else None

    def draws(self, seed: int, start: int, length: int) -> list[int]:
        positions = range(start, start + length)
        if self.table is None:
            return [uniform_draw(self.rows, seed, position) for position in positions]
        return [self.table.draw(seed, position) for position in positions]


def pattern(rows: int, multiplier: int, modulus: int, offset: float) -> list[float]:
    """Weights that need not be listed."""
    return [row * multiplier % modulus + offset for row in range(rows)]


SEEDS = (0, 1, 42, 2**63, 2**64 - 1)
STARTS = (0, 3, 10**6, 2**66 - 2, 2**128 - 20)
ROWS = (1, 2, 10, 1797, 2**32 - 1, 2**32 + 15, 10**12, 3 * 2**62, 2**64 - 1)
WEIGHTS = (
    [1.0, 2.0],
    [1.0, 1e6],
    [0.1, 0.2, 0.3, 0.4],
    [5e-324, 1e-323, 2e-323],
    [1e-308, 1.0, 1e308],
    [2.0**-62, 1.0, 2.0**-70, 1.0],
    [3.0, 1.0, 1.0, 1.0, 3.0, 7.0, 0.5],
    [1.0] * 9 + [1.0000000000000002],
)
PATTERNS = (
    {"rows": 1000, "multiplier": 7, "modulus": 1000, "offset": 0.5},
    {"rows": 40_000, "multiplier": 7919, "modulus": 1009, "offset": 0.25},
    {"rows": 33_000, "multiplier": 1, "modulus": 33_000, "offset": 1e-9},
)


def golden() -> dict[str, object]:
    length = 17
    uniform, weighted, patterns = [], [], []
    for number, seed in enumerate(SEEDS):
        for rows, start in zip(ROWS, (STARTS * 3)[number:], strict=False):
            drawn = [uniform_draw(rows, seed, position) for position in range(start, start + length)]
            uniform.append({"rows": rows, "seed": seed, "start": str(start), "draws": drawn})
    for number, weights in enumerate(WEIGHTS):
        stream = Stream(weights)
        for seed, start in zip(SEEDS, (STARTS * 3)[number:], strict=False):
            drawn = stream.draws(seed, start, length)
            weighted.append({"weights": weights, "seed": seed, "start": str(start), "draws": drawn})
    for shape in PATTERNS:
        stream = Stream(pattern(**shape))
        for seed, start in zip(SEEDS, STARTS, strict=True):
            drawn = stream.draws(seed, start, length)
            patterns.append({**shape, "seed": seed, "start": str(start), "draws": drawn})
    return {"version": 1, "uniform": uniform, "weighted": weighted, "pattern": patterns}


if __name__ == "__main__":
    lists = {name: value for name, value in golden().items() if isinstance(value, list)}
    body = ",\n".join(
        f'"{name}": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]" for name, cases in lists.items()
    )
    sys.stdout.write('{"version": 1,\n' + body + "}\n")
