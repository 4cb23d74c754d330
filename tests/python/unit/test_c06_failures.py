"""C6: a bad source disturbs nobody else."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import QUIET, Failing, Listed, numbered, opened, write_error

import dataset_rt as drt

ROWS = [(b"x" * 1000, {"row": row}) for row in range(700)]


class CustomError(Exception):
    """An exception of a module."""


def leftovers(base: Path) -> list[Path]:
    """What a write left besides caches."""
    return list((base / "tmp").glob("*")) if (base / "tmp").exists() else []


@pytest.mark.parametrize("rows", [[], ROWS], ids=["at once", "later"])
def test_c06_the_others_are_written_and_nothing_of_it_stays(
    runtime: drt.DatasetRuntime, tmp_path: Path, rows: Any
) -> None:
    sources = [numbered("a", 600), Failing("bad", ValueError("boom"), rows), numbered("b", 600)]
    results = runtime.write_cache(sources, tmp_path, writer_config=QUIET)
    assert [type(result) for result in results] == [
        drt.CacheWriteSuccess,
        drt.CacheWriteError,
        drt.CacheWriteSuccess,
    ]
    assert "ValueError: boom" in results[1][1]
    assert f"row {len(rows)}" in results[1][1]
    assert not (tmp_path / "bad").exists()
    assert leftovers(tmp_path) == []
    assert len(opened(runtime, [tmp_path / "a", tmp_path / "b"], validate_cache=True)) == 1200


def test_c06_message_keeps_type_text_and_cause(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    error = CustomError("outer text")
    error.__cause__ = KeyError("inner")
    message = write_error(runtime, tmp_path, Failing("bad", error))
    assert f"{CustomError.__module__}.CustomError: outer text (caused by KeyError: 'inner')" in message


def test_c06_circle_of_causes_ends(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    error, other = CustomError("one"), CustomError("two")
    error.__cause__, other.__cause__ = other, error
    assert "CustomError: two" in write_error(runtime, tmp_path, Failing("bad", error))


def test_c06_text_that_cannot_be_made_is_no_second_failure(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    class UnprintableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert "UnprintableError" in write_error(runtime, tmp_path, Failing("bad", UnprintableError()))


class NotIterable:
    name = "bad"


class RaisingIter:
    name = "bad"

    def __iter__(self) -> Any:
        raise OSError(5, "no tape")


@pytest.mark.parametrize(
    ("source", "reason"), [(NotIterable(), "TypeError"), (RaisingIter(), "OSError: [Errno 5] no tape")]
)
def test_c06_source_that_cannot_begin_is_an_error(
    runtime: drt.DatasetRuntime, tmp_path: Path, source: Any, reason: str
) -> None:
    results = runtime.write_cache([source, numbered("a", 1)], tmp_path, writer_config=QUIET)
    assert reason in results[0][1]
    assert results[1] == drt.CacheWriteSuccess("a", tmp_path / "a")


def test_c06_empty_source_is_an_error(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    results = runtime.write_cache([Listed("empty", []), numbered("a", 1)], tmp_path, writer_config=QUIET)
    assert results[0] == drt.CacheWriteError("empty", "cache source yielded no samples")
    assert results[1] == drt.CacheWriteSuccess("a", tmp_path / "a")
    assert not (tmp_path / "empty").exists()


class Final(BaseException):
    """Something that is no `Exception`."""


def failing_name(error: BaseException) -> Any:
    class Source:
        @property
        def name(self) -> str:
            raise error

    return Source()


def failing_iter(error: BaseException) -> Any:
    class Source:
        name = "bad"

        def __iter__(self) -> Any:
            raise error

    return Source()


def failing_metadata(error: BaseException) -> Any:
    class Metadata(dict[str, Any]):
        def items(self) -> Any:
            raise error

    return Listed("bad", [(b"", Metadata(a=1))])


def failing_fingerprint(error: BaseException) -> Any:
    class Source(Listed):
        @property
        def fingerprint(self) -> str:
            raise error

    return Source("bad", ROWS)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit(), Final("text")], ids=repr)
@pytest.mark.parametrize(
    "make",
    [lambda error: Failing("bad", error, ROWS), failing_name, failing_iter, failing_metadata, failing_fingerprint],
    ids=["row", "name", "iter", "metadata", "fingerprint"],
)
def test_c06_what_is_no_exception_comes_out_as_the_same_object(
    runtime: drt.DatasetRuntime, tmp_path: Path, error: BaseException, make: Callable[[BaseException], Any]
) -> None:
    with pytest.raises(type(error)) as raised:
        runtime.write_cache([make(error), numbered("never", 1)], tmp_path, writer_config=QUIET)
    assert raised.value is error
    assert not (tmp_path / "bad").exists()
    assert not (tmp_path / "never").exists()
    assert leftovers(tmp_path) == []
    # The runtime is as good as before.
    assert runtime.write_cache(numbered("never", 1), tmp_path, writer_config=QUIET)[0] == drt.CacheWriteSuccess(
        "never", tmp_path / "never"
    )


def test_c06_finished_caches_stay_after_an_interrupt(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    class Source:
        name = "bad"

        def __iter__(self) -> Any:
            yield ROWS[0]
            while not (tmp_path / "a").exists():
                pass
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runtime.write_cache([numbered("a", 600), Source()], tmp_path, writer_config=QUIET)
    assert len(opened(runtime, [tmp_path / "a"], validate_cache=True)) == 600
    assert not (tmp_path / "bad").exists()
    assert leftovers(tmp_path) == []


def test_c06_no_reference_to_a_source_or_its_rows_stays(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    payload, text = bytes(100_000), "x" * 1000
    source = Listed("a", [(payload, {"text": text})] * 10)
    before = [sys.getrefcount(value) for value in (payload, text, source)]
    runtime.write_cache(source, tmp_path, writer_config=QUIET)
    assert [sys.getrefcount(value) for value in (payload, text, source)] == before


@pytest.mark.parametrize("error", [KeyboardInterrupt("in text"), SystemExit(3)], ids=repr)
@pytest.mark.parametrize("part", ["text", "cause"])
def test_c06_what_is_no_exception_ends_the_call_also_while_a_text_is_made(
    runtime: drt.DatasetRuntime, tmp_path: Path, error: BaseException, part: str
) -> None:
    class TextError(Exception):
        def __str__(self) -> str:
            raise error

    failure: Exception = TextError()
    if part == "cause":
        failure = ValueError("outer")
        failure.__cause__ = TextError()
    with pytest.raises(type(error)) as raised:
        runtime.write_cache([Failing("bad", failure), numbered("never", 1)], tmp_path, writer_config=QUIET)
    assert raised.value is error
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("kind", ["text", "cause", "key", "known key", "odd key", "name"])
def test_c06_long_texts_are_cut_in_messages(runtime: drt.DatasetRuntime, tmp_path: Path, kind: str) -> None:
    long: Any = "é" * 100_000
    caused = ValueError("short")
    caused.__cause__ = ValueError(long)
    source: Any = {
        "text": Failing("bad", ValueError(long)),
        "cause": Failing("bad", caused),
        "key": Listed("bad", [(b"", {}), (b"", {long: 1})]),
        "known key": Listed("bad", [(b"", {long: 1}), (b"", {long: "text"})]),
        "odd key": Listed("bad", [(b"", {(long,): 1})]),
        "name": Listed(long, []),
    }[kind]
    message = write_error(runtime, tmp_path, source)
    assert "é" * 1900 in message
    assert len(message) < 2300
    assert "characters)" in message
