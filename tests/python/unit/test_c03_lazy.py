"""C3: sources are pulled lazily, and what is in flight is bounded."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from support import QUIET, write

import dataset_rt as drt


class Payload(bytes):
    """Bytes that count how many of them are alive."""

    alive: ClassVar[int] = 0
    most: ClassVar[int] = 0

    def __init__(self, _content: bytes) -> None:
        Payload.alive += 1
        Payload.most = max(Payload.most, Payload.alive)

    def __del__(self) -> None:
        Payload.alive -= 1


@pytest.mark.parametrize("prefetch_size", [1, 64])
def test_c03_payloads_in_flight_are_bounded(runtime: drt.DatasetRuntime, tmp_path: Path, prefetch_size: int) -> None:
    class Source:
        name = "a"

        def __iter__(self) -> Iterator[Any]:
            for row in range(40):
                yield Payload(bytes(2 << 20)), {"row": row}

    Payload.alive = Payload.most = 0
    write(runtime, tmp_path, Source(), prefetch_size=prefetch_size)
    # The jobs in flight, the one being filled, one that waits for room, and the one being made.
    assert 1 <= Payload.most <= min(prefetch_size, 2) + 3
    assert Payload.alive == 0


def test_c03_nothing_is_on_disk_before_the_iterator_exists(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    base = tmp_path / "base"
    seen: list[list[Path]] = []

    class Source:
        name = "a"

        def __iter__(self) -> Iterator[Any]:
            seen.append(list(base.rglob("a*")))
            return iter([(b"x", {})])

    write(runtime, base, Source())
    assert seen == [[]]


def test_c03_sources_are_begun_one_after_the_other_and_once(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    events: list[str] = []

    class Source:
        def __init__(self, name: str) -> None:
            self.name = name

        def __iter__(self) -> Iterator[Any]:
            events.append(f"{self.name} begins")
            for row in range(600):
                yield b"x", {"row": row}
            events.append(f"{self.name} ends")

    write(runtime, tmp_path, Source("a"), Source("b"))
    assert events == ["a begins", "a ends", "b begins", "b ends"]


def test_c03_rows_of_a_slow_source_do_not_wait_for_a_full_job(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    on_disk = 0

    class Source:
        name = "a"

        def __iter__(self) -> Iterator[Any]:
            nonlocal on_disk
            yield b"x" * 1000, {"row": 0}
            # Slow enough for the next row to be handed over alone, together with this one.
            started = time.perf_counter()
            while time.perf_counter() - started < 0.01:
                pass
            yield b"x" * 1000, {"row": 1}
            # Slower than the disk: what was yielded gets there although this source says nothing more for now.
            while on_disk < 2000:
                on_disk = sum(path.stat().st_size for path in tmp_path.rglob("*.bin"))
            yield b"x" * 1000, {"row": 2}

    write(runtime, tmp_path, Source())
    assert on_disk >= 2000


def test_c03_iterator_is_dropped_with_its_source(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    closed: list[str] = []

    class Source:
        def __init__(self, name: str, bad: bool) -> None:
            self.name = name
            self.bad = bad

        def __iter__(self) -> Iterator[Any]:
            try:
                yield b"x", {"a": 1}
                yield b"x", {"a": "one" if self.bad else 1}
            finally:
                closed.append(self.name)

    results = runtime.write_cache([Source("bad", True), Source("good", False)], tmp_path, writer_config=QUIET)
    assert [type(result) for result in results] == [drt.CacheWriteError, drt.CacheWriteSuccess]
    assert closed == ["bad", "good"]
