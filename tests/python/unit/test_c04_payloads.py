"""C4: what counts as a payload."""

import array
import ctypes
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from support import Listed, opened, round_trip, write, write_error

import dataset_rt as drt

LARGE = bytes(range(256)) * 200
GRID = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


class Text(bytes):
    """A subclass of bytes."""


PAYLOADS: list[tuple[str, Any, bytes]] = [
    ("empty", b"", b""),
    ("bytes", b"abc", b"abc"),
    ("large bytes", LARGE, LARGE),
    ("subclass", Text(b"abc"), b"abc"),
    ("bytearray", bytearray(b"abc"), b"abc"),
    ("empty bytearray", bytearray(), b""),
    ("large bytearray", bytearray(LARGE), LARGE),
    ("memoryview", memoryview(b"abc"), b"abc"),
    ("strided memoryview", memoryview(b"abcdef")[::2], b"ace"),
    ("reversed memoryview", memoryview(b"abcdef")[::-1], b"fedcba"),
    ("large strided memoryview", memoryview(LARGE)[::3], LARGE[::3]),
    ("cast memoryview", memoryview(b"abcdefgh").cast("i"), b"abcdefgh"),
    ("array", array.array("h", [1, 2]), b"\1\0\2\0"),
    ("numpy", GRID, GRID.tobytes()),
    ("numpy transposed", GRID.T, GRID.T.tobytes()),
    ("numpy fortran order", np.asfortranarray(GRID), GRID.tobytes()),
    ("numpy sliced", GRID[:, ::2, 1:], GRID[:, ::2, 1:].tobytes()),
    ("numpy negative strides", GRID[::-1, :, ::-1], GRID[::-1, :, ::-1].tobytes()),
    ("numpy without elements", np.zeros((0, 3)), b""),
    ("numpy zero-dimensional", np.array(7, dtype=np.int64), (7).to_bytes(8, "little")),
    ("numpy broadcast", np.broadcast_to(np.uint8(3), (2, 2)), b"\3\3\3\3"),
    ("numpy structured", np.zeros(2, dtype=[("Order", "u1"), ("b", "i2")]), bytes(6)),
    ("numpy bytes scalar", np.bytes_(b"abc"), b"abc"),
    ("numpy read-only", np.frombuffer(b"abc", dtype=np.uint8), b"abc"),
    ("ctypes", (ctypes.c_uint8 * 3)(1, 2, 3), b"\1\2\3"),
    ("mmap", mmap.mmap(-1, 4096), bytes(4096)),
    ("arrow buffer", pa.py_buffer(b"abc"), b"abc"),
]


# Larger than what is copied in one piece: 4 MiB.
BIG = np.random.default_rng(0).integers(0, 256, (3, 1700, 2500), dtype=np.uint8)
BIG_PAYLOADS: list[tuple[str, Any]] = [
    ("bytearray", bytearray(BIG)),
    ("numpy", BIG),
    ("numpy sliced", BIG[:, 1:]),
    ("numpy transposed", BIG.T),
    ("numpy of one dimension", BIG.reshape(-1)[::-1]),
    ("numpy with a long slice", BIG.reshape(1, 1700, 7500)[:, ::-1, :7000]),
    ("numpy with one long slice", BIG.reshape(1, 1, -1)[..., ::-2]),
    ("numpy of long elements", BIG.reshape(-1)[: 12 << 20].view("V6291456").repeat(2)[::-1]),
    ("numpy broadcast", np.broadcast_to(BIG[0, 0], (5000, 2500))),
    ("numpy of words", np.asfortranarray(BIG.reshape(1700, 7500)[:, :7496].view(np.int64))),
]


@pytest.mark.parametrize("payload", [case[1] for case in BIG_PAYLOADS], ids=[case[0] for case in BIG_PAYLOADS])
def test_c04_big_buffers_become_their_bytes(runtime: drt.DatasetRuntime, tmp_path: Path, payload: Any) -> None:
    assert memoryview(payload).nbytes > 4 << 20
    source = Listed("a", [(payload, {"row": 0}), (b"small", {"row": 1}), (payload, {"row": 2})])
    content = memoryview(payload).tobytes()
    assert [sample.data for sample in opened(runtime, write(runtime, tmp_path, source))] == [content, b"small", content]


@pytest.mark.parametrize(("payload", "content"), [case[1:] for case in PAYLOADS], ids=[case[0] for case in PAYLOADS])
@pytest.mark.parametrize("algo", ["none", "lz4"])
def test_c04_buffers_become_their_bytes(
    runtime: drt.DatasetRuntime, tmp_path: Path, payload: Any, content: bytes, algo: Any
) -> None:
    paths = write(
        runtime, tmp_path, Listed("a", [(payload, {})] * 3), shard_compression=drt.ShardCompression(algo=algo)
    )
    samples = list(opened(runtime, paths))
    assert [sample.data for sample in samples] == [content] * 3
    assert {type(sample.data) for sample in samples} == {bytes}


@pytest.mark.parametrize(
    "payload",
    [
        7,
        True,
        1.5,
        None,
        "text",
        [1, 2],
        (1, 2),
        iter(b"abc"),
        {"a": b"b"},
        object(),
        np.int64(3),
        np.float32(1.5),
        np.uint8(1),
        np.str_("text"),
        np.datetime64("2020-01-01"),
        np.void(b"abc"),
    ],
    ids=lambda payload: type(payload).__name__,
)
def test_c04_other_objects_are_refused(runtime: drt.DatasetRuntime, tmp_path: Path, payload: Any) -> None:
    message = write_error(runtime, tmp_path, Listed("a", [(b"ok", {"k": 1}), (payload, {"k": 1})]))
    assert "data must be bytes-like" in message
    assert type(payload).__name__ in message
    assert "row 1" in message
    assert '"a"' in message


@pytest.mark.parametrize(
    "payload",
    [np.array([b"x", None], dtype=object), np.zeros(2, dtype=[("n", "i4"), ("o", "O")]), (ctypes.py_object * 2)()],
    ids=["numpy", "numpy field", "ctypes"],
)
def test_c04_buffers_of_python_objects_are_refused(runtime: drt.DatasetRuntime, tmp_path: Path, payload: Any) -> None:
    message = write_error(runtime, tmp_path, Listed("a", [(payload, {})]))
    assert "data must be bytes-like, found a buffer of Python objects" in message


def test_c04_released_view_is_an_error_of_its_source(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    view = memoryview(b"abc")
    view.release()
    message = write_error(runtime, tmp_path, Listed("a", [(view, {})]))
    told = "data must be bytes-like, found a released memoryview; release it only after the write"
    assert message == f'source "a", row 0: {told}'


class Pair(NamedTuple):
    first: Any
    second: Any


@pytest.mark.parametrize("item", [(b"x", {"k": 1}), drt.CacheInput(b"x", {"k": 1}), Pair(b"x", {"k": 1})])
def test_c04_any_tuple_of_two_is_a_sample(runtime: drt.DatasetRuntime, tmp_path: Path, item: Any) -> None:
    [sample] = round_trip(runtime, tmp_path, [item])
    assert (sample.data, sample.metadata) == (b"x", {"k": 1})


@pytest.mark.parametrize(
    ("item", "found"),
    [
        (b"x", "bytes"),
        ([b"x", {}], "list"),
        ((b"x",), "a tuple of 1"),
        ((b"x", {}, 1), "a tuple of 3"),
        ((), "a tuple of 0"),
        (None, "NoneType"),
        ({"data": b"x"}, "dict"),
        (drt.CachedSample(b"x", {}, 1, 2), "a tuple of 4"),
    ],
)
def test_c04_anything_else_yielded_is_an_error_that_says_so(
    runtime: drt.DatasetRuntime, tmp_path: Path, item: Any, found: str
) -> None:
    message = write_error(runtime, tmp_path, Listed("a", [(b"x", {}), item]))
    assert f"expected a CacheInput or a tuple (data, metadata), found {found}" in message
    assert "row 1" in message


def test_c04_arrays_that_show_no_memory_are_refused_with_advice(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    dates = np.array(["2024-01-01"], dtype="datetime64[D]")
    message = write_error(runtime, tmp_path, Listed("a", [(dates, {"n": 1})]))
    assert "data must be bytes-like, found numpy.ndarray, which does not show its memory" in message
    assert message.endswith("convert it to bytes, as with .tobytes()")


@pytest.mark.parametrize("size", [10, 100_000])
def test_c04_changing_a_buffer_after_the_yield_has_no_effect(
    runtime: drt.DatasetRuntime, tmp_path: Path, size: int
) -> None:
    class Source:
        name = "a"

        def __iter__(self) -> Iterator[Any]:
            reused = bytearray(size)
            for row in range(100):
                reused[:] = bytes([row]) * size
                yield reused, {"row": row}
                # Not only other content: the buffer is free to change its size as well.
                reused.clear()
                reused.extend(bytes(size))

    samples = list(opened(runtime, write(runtime, tmp_path, Source())))
    assert [sample.data for sample in samples] == [bytes([row]) * size for row in range(100)]
