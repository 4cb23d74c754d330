"""A4: type information, checked against the runtime."""

import os
import subprocess
import sys
from pathlib import Path

import dataset_rt

PACKAGE = Path(dataset_rt.__file__).parent

PROGRAM = """
from collections.abc import Iterator
from pathlib import Path

import dataset_rt as drt
import polars as pl
from typing_extensions import assert_type


class Source:
    name = "a"

    def __iter__(self) -> Iterator[drt.CacheInput]:
        yield drt.CacheInput(b"", {"n": 1, "f": 0.5, "s": "x", "b": True})


runtime = drt.DatasetRuntime(num_workers=1)
source: drt.CacheSource = Source()
results = runtime.write_cache([Source()], Path("x"))
assert_type(results, list[drt.CacheWriteSuccess | drt.CacheWriteError])
result = runtime.from_cache_sources(source, "x", reader_config=drt.ReaderConfig(seed=1))
match result:
    case drt.CacheSourcesDatasetSuccess(dataset, _):
        assert_type(dataset, drt.CachedDataset)
        for sample in dataset:
            assert_type(sample, drt.CachedSample)
            assert_type(sample.data, bytes)
        assert_type(dataset.get_metadata(), pl.DataFrame)
        dataset.update_metadata(dataset.get_metadata())
        assert_type(dataset.cache_paths, list[Path])
    case drt.CacheSourcesDatasetError(_, message):
        assert_type(message, str)

runtime.write_cache("name", "x")  # type: ignore[arg-type]
drt.DatasetRuntime(2)  # type: ignore[call-arg]
dataset.get_item("a", 0)  # type: ignore[arg-type]
"""


def run(*arguments: str, folder: Path) -> None:
    environment = os.environ | {"MYPYPATH": str(PACKAGE.parent), "PYTHONPATH": str(PACKAGE.parent)}
    finished = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=400
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_a04_package_is_marked_as_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_a04_stub_of_the_native_module_agrees_with_it(tmp_path: Path) -> None:
    run("mypy.stubtest", "dataset_rt._native", "--concise", folder=tmp_path)


def test_a04_users_get_the_documented_types(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    run("mypy", "--strict", "program.py", folder=tmp_path)
