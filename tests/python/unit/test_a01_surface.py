"""A1: the public names, and what importing them costs."""

import inspect
import statistics
import time

import pytest
from support import run_python

import dataset_rt as drt
from dataset_rt import api

CLASSES = {
    "AbsentManifestTarget",
    "CacheInput",
    "CacheSource",
    "CacheSourcesDatasetError",
    "CacheSourcesDatasetSuccess",
    "CacheWriteError",
    "CacheWriteSuccess",
    "CachedDataset",
    "CachedSample",
    "DatasetRuntime",
    "Err",
    "ManifestUpdateEntry",
    "ManifestUpdateError",
    "ManifestUpdateReport",
    "Ok",
    "ReaderConfig",
    "ShardCompression",
    "SizedTorchIterableDataset",
    "WriterConfig",
    "WriterProfilerConfig",
}
ALIASES = {"Result", "CacheWriteResult", "CacheSourcesDatasetResult"}
OF_API = {"BytesLike", "Metadata", "MetadataValue", "CompressionAlgo", "DEFAULT_WRITER_CONFIG"}


def test_a01_package_has_exactly_the_documented_names() -> None:
    assert set(drt.__all__) == CLASSES | ALIASES | {"__version__"}
    assert {name for name in dir(drt) if not name.startswith("_")} == CLASSES | ALIASES


def test_a01_api_adds_aliases_and_the_default_configuration() -> None:
    assert set(api.__all__) == set(drt.__all__) | OF_API
    assert drt.WriterConfig() == api.DEFAULT_WRITER_CONFIG


@pytest.mark.parametrize("name", sorted(CLASSES | ALIASES | {"__version__"}))
def test_a01_both_modules_give_the_same_object(name: str) -> None:
    assert getattr(drt, name) is getattr(api, name)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a01_classes_call_the_api_their_home(name: str) -> None:
    assert inspect.isclass(getattr(drt, name))
    assert getattr(drt, name).__module__ == "dataset_rt.api"


def test_a01_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        drt.no_such_name  # noqa: B018


def test_a01_star_import_gives_the_public_names() -> None:
    program = "from dataset_rt import *\nprint(DatasetRuntime.__name__, __version__)"
    assert run_python(program).stdout.split() == ["DatasetRuntime", drt.__version__]


@pytest.mark.parametrize("module", ["dataset_rt", "dataset_rt.api"])
def test_a01_import_loads_no_table_or_tensor_library(module: str) -> None:
    program = f"import {module}, sys; print([m for m in ('polars', 'pyarrow', 'numpy', 'torch') if m in sys.modules])"
    assert run_python(program).stdout == "[]\n"


def test_a01_import_costs_little_more_than_pydantic() -> None:
    seconds: dict[str, list[float]] = {"pydantic": [], "dataset_rt": []}
    for _ in range(7):
        for module, spent in seconds.items():
            started = time.perf_counter()
            run_python(f"import {module}")
            spent.append(time.perf_counter() - started)
    assert statistics.median(seconds["dataset_rt"]) <= 1.3 * statistics.median(seconds["pydantic"])
