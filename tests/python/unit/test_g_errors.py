"""G: which exception, and what its message says."""

import os
from pathlib import Path
from typing import Any

import pytest
from support import QUIET, numbered, opened, write, write_error

import dataset_rt as drt

CONFIG = drt.ReaderConfig(seed=1)


@pytest.mark.parametrize("path", [None, 3, b"base", ["base"], object()], ids=lambda path: type(path).__name__)
def test_g_path_of_another_type_is_a_type_error(runtime: drt.DatasetRuntime, path: Any) -> None:
    with pytest.raises(TypeError, match="path must be str or Path, found"):
        runtime.write_cache(numbered("a", 1), path)
    with pytest.raises(TypeError, match="path must be str or Path, found"):
        runtime.from_cache_sources(numbered("a", 1), path, reader_config=CONFIG)


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
