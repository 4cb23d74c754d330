"""G: which exception, and what its message says."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from support import QUIET, Listed, numbered, opened, write, write_error

import dataset_rt as drt

CONFIG = drt.ReaderConfig(seed=1)


@pytest.mark.parametrize("path", [None, 3, b"base", ["base"], object()], ids=lambda path: type(path).__name__)
def test_g_path_of_another_type_is_a_type_error(runtime: drt.DatasetRuntime, path: Any) -> None:
    with pytest.raises(TypeError, match="path must be str or Path, found"):
        runtime.write_cache(numbered("a", 1), path)
    with pytest.raises(TypeError, match="path must be str or Path, found"):
        runtime.from_cache_sources(numbered("a", 1), path, reader_config=CONFIG)


class Nowhere:
    def __fspath__(self) -> str:
        return ""


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", "an empty text; '.' is the working directory"),
        (Nowhere(), "an empty text; '.' is the working directory"),
        ("a\0b", r"a NUL in 'a\x00b'"),
        (Path("\ud800"), r"'\ud800', which has letters that no name can have"),
    ],
    ids=["empty", "empty object", "NUL", "surrogate"],
)
def test_g_a_text_that_is_no_path_is_refused_by_name(
    runtime: drt.DatasetRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any, found: str
) -> None:
    dataset = opened(runtime, write(runtime, tmp_path / "caches", numbered("a", 1)))
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    for refused, argument in [
        (lambda: runtime.write_cache(numbered("a", 1), path, writer_config=QUIET), "path"),
        (lambda: runtime.from_cache_sources(numbered("a", 1), path, reader_config=CONFIG, writer_config=QUIET), "path"),
        (lambda: runtime.cached_dataset([tmp_path, path], reader_config=CONFIG), "paths[1]"),
        (lambda: dataset.dump_config(path), "path"),
        (lambda: drt.CachedDataset.from_config(path), "path"),
    ]:
        with pytest.raises(
            ValueError, match=f"^{re.escape(f'{argument} must name a file or a directory, found {found}')}$"
        ):
            refused()
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("config", [None, {}, CONFIG, drt.ShardCompression()], ids=lambda value: type(value).__name__)
def test_g_writer_config_of_another_type_is_a_type_error(
    runtime: drt.DatasetRuntime, tmp_path: Path, config: Any
) -> None:
    with pytest.raises(TypeError, match="writer_config must be a WriterConfig, found"):
        runtime.write_cache(numbered("a", 1), tmp_path, writer_config=config)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("config", [None, {"seed": 1}, QUIET, 1], ids=lambda value: type(value).__name__)
def test_g_reader_config_of_another_type_is_a_type_error(
    runtime: drt.DatasetRuntime, tmp_path: Path, config: Any
) -> None:
    with pytest.raises(TypeError, match="reader_config must be a ReaderConfig, found"):
        runtime.cached_dataset([tmp_path], reader_config=config)
    with pytest.raises(TypeError, match="reader_config must be a ReaderConfig, found"):
        runtime.from_cache_sources(numbered("a", 1), tmp_path, reader_config=config)
    assert list(tmp_path.iterdir()) == []


def test_g_configuration_that_skipped_validation_is_checked_again(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 1))
    for update in ({"prefetch_size": 0}, {"max_shard_bytes": 0}, {"max_shard_bytes": 2**63}):
        with pytest.raises(ValueError, match=next(iter(update))):
            runtime.write_cache(numbered("b", 1), tmp_path, writer_config=QUIET.model_copy(update=update))
    odd = drt.ShardCompression.model_construct(algo="none", ratio=2.0)
    with pytest.raises(ValueError, match="ratio"):
        runtime.write_cache(
            numbered("b", 1), tmp_path, writer_config=QUIET.model_copy(update={"shard_compression": odd})
        )
    with pytest.raises(ValueError, match="prefetch_size"):
        runtime.cached_dataset([path], reader_config=CONFIG.model_copy(update={"prefetch_size": 0}))


@pytest.mark.parametrize(
    ("update", "error", "message"),
    [
        ({"seed": -5}, ValueError, r"seed must be 0 \.\.\. 2\^64-1, found -5"),
        ({"seed": 2**64}, ValueError, r"seed must be .*found 18446744073709551616"),
        ({"seed": 10**5000}, ValueError, r"seed must be .*found an int of 16610 bits"),
        ({"seed": True}, TypeError, "seed must be an int, found bool"),
        ({"seed": None}, TypeError, "seed must be an int, found NoneType"),
        ({"shuffle": 1}, TypeError, "shuffle must be a bool, found int"),
        ({"prefetch_size": 0}, ValueError, "prefetch_size must be"),
        ({"prefetch_size": -1}, ValueError, "prefetch_size must be .*found -1"),
    ],
)
def test_g_reader_configuration_that_skipped_validation_is_refused_in_our_words(
    runtime: drt.DatasetRuntime, tmp_path: Path, update: dict[str, Any], error: type[Exception], message: str
) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 1))
    with pytest.raises(error, match=f"^{message}"):
        runtime.cached_dataset([path], reader_config=CONFIG.model_copy(update=update))
    with pytest.raises(error, match=f"^{message}"):
        runtime.from_cache_sources(
            [numbered("new", 1)],
            tmp_path / "other",
            reader_config=CONFIG.model_copy(update=update),
            writer_config=QUIET,
        )
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("update", "error", "message"),
    [
        ({"num_processes": -1}, ValueError, r"num_processes must be 0 \.\.\. 2\^63-1, found -1"),
        ({"num_processes": True}, TypeError, "num_processes must be an int, found bool"),
        ({"num_processes": 2, "process_timeout_seconds": float("nan")}, ValueError, "process_timeout_seconds must be"),
        ({"process_timeout_seconds": "1"}, TypeError, "process_timeout_seconds must be a float, found str"),
        ({"max_shard_bytes": 1.5}, TypeError, "max_shard_bytes must be an int, found float"),
        ({"show_progress": None}, TypeError, "show_progress must be a bool, found NoneType"),
        (
            {"shard_compression": drt.ShardCompression.model_construct(algo="zstd")},  # type: ignore[arg-type]
            ValueError,
            'shard_compression.algo must be "none" or "lz4", found "zstd"',
        ),
        ({"profiler": None}, ValueError, "a configuration needs path, found none in NoneType"),
    ],
)
def test_g_writer_configuration_that_skipped_validation_is_refused_in_our_words(
    runtime: drt.DatasetRuntime, tmp_path: Path, update: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{message}"):
        runtime.write_cache(numbered("b", 1), tmp_path / "base", writer_config=QUIET.model_copy(update=update))
    assert not (tmp_path / "base").exists()


def test_g_huge_ints_are_told_by_their_size(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    """Python prints no int of so many digits: an exception within the message would land on stderr, or replace it."""
    dataset = opened(runtime, write(runtime, tmp_path, numbered("a", 1)))
    huge = 10**5000
    told = "found an int of 16610 bits"
    with pytest.raises(ValueError, match=f"epoch_len must be .*{told}"):
        dataset.set_epoch_len(huge)
    with pytest.raises(ValueError, match=f"num_workers must be .*{told}"):
        drt.DatasetRuntime(num_workers=-huge)
    with pytest.raises(IndexError, match="no sample has cache_id an int of 16610 bits"):
        dataset.get_item(huge, 0)
    key: Any = huge
    assert "metadata keys must be str" in write_error(runtime, tmp_path, Listed("b", [(b"", {key: 1})]))
    pytest.importorskip("torch.utils.data")
    with pytest.raises(ValueError, match=f"batch_size must be .*{told}"):
        dataset.to_torch_dataloader(batch_size=huge)
    with pytest.raises(ValueError, match=f"timeout must be .*{told}"):
        dataset.to_torch_dataloader(timeout=huge)


@pytest.mark.parametrize("file", ["manifest.json", "metadata.arrow"])
def test_g_damaged_files_are_told_with_advice(runtime: drt.DatasetRuntime, tmp_path: Path, file: str) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 1))
    (path / file).write_bytes((path / file).read_bytes()[:-20])
    with pytest.raises(ValueError, match=rf"{file}: .*; write the cache again, or restore it from a copy$"):
        opened(runtime, [path])


def test_g_file_errors_carry_errno_and_filename(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 1))
    (path / "index.bin").unlink()
    with pytest.raises(FileNotFoundError) as raised:
        opened(runtime, [path])
    assert raised.value.errno == 2
    assert raised.value.filename == str(path / "index.bin")
    assert "No such file" in str(raised.value)


@pytest.mark.parametrize("file", ["metadata.arrow", "shards/000000.bin"])
def test_g_directory_in_the_place_of_a_file_is_told(runtime: drt.DatasetRuntime, tmp_path: Path, file: str) -> None:
    [path] = write(runtime, tmp_path, numbered("a", 1))
    (path / file).unlink()
    (path / file).mkdir()
    with pytest.raises((OSError, ValueError), match=Path(file).name):
        opened(runtime, [path])


def test_g_base_that_is_a_file_is_the_error_of_each_source(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    message = write_error(runtime, tmp_path / "file", numbered("a", 1))
    assert str(tmp_path / "file") in message
    assert os.strerror(20) in message or "exists" in message


@pytest.mark.parametrize("call", ["write", "open"])
def test_g_messages_begin_in_lower_case_and_say_what_to_do(
    runtime: drt.DatasetRuntime, tmp_path: Path, call: str
) -> None:
    if call == "write":
        message = write_error(runtime, tmp_path, numbered("tmp", 1))
        assert message.endswith("rename the source")
    else:
        with pytest.raises(ValueError) as raised:  # noqa: PT011
            opened(runtime, [tmp_path])
        message = str(raised.value)
        assert "pass the directory of one cache" in message
    assert message[0] == message[0].lower()
