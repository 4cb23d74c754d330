"""`CachedDataset` in plain Python: what it promises, without threads, files or speed."""

from collections.abc import Iterator, Sequence

import draw_reference

Ids = tuple[int, int]


class DatasetModel:
    """A table of ids with weights, and a cursor that every iterator moves by its length when it is made."""

    def __init__(self, stored: Sequence[Ids], seed: int, shuffle: bool) -> None:
        self.stored = stored
        self.seed = seed
        self.shuffle = shuffle
        self.update(stored, [1.0] * len(stored))

    def update(self, rows: Sequence[Ids], weights: Sequence[float]) -> None:
        """Replace the table; every row is one entry, also when it repeats another one."""
        if not rows:
            raise ValueError("no rows")
        if not all(0 < weight < float("inf") for weight in weights):
            raise ValueError("weight")
        if not set(rows) <= set(self.stored):
            raise ValueError("unknown id")
        self.rows = list(rows)
        self.weights = list(weights)
        self.stream = draw_reference.Stream(self.weights) if self.shuffle else None
        self.epoch_len = len(rows)
        self.position = 0

    def set_epoch_len(self, epoch_len: int) -> None:
        """Change the length of later windows, and nothing else."""
        if not 1 <= epoch_len < 2**63:
            raise ValueError("epoch_len")
        self.epoch_len = epoch_len

    def __len__(self) -> int:
        return self.epoch_len

    def __iter__(self) -> Iterator[Ids]:
        start = self.position
        self.position += self.epoch_len
        return self._window(self.rows, self.stream, start, start + self.epoch_len)

    def _window(self, rows: list[Ids], stream: draw_reference.Stream | None, start: int, stop: int) -> Iterator[Ids]:
        for position in range(start, stop):
            if stream is None:
                yield rows[position % len(rows)]
            else:
                [row] = stream.draws(self.seed, position, 1)
                yield rows[row]

    def get_item(self, cache_id: int, sample_id: int) -> Ids:
        """Find a stored sample, in the table or not."""
        if (cache_id, sample_id) not in self.stored:
            raise IndexError("unknown id")
        return cache_id, sample_id
