"""A2: named tuples, outcomes and configurations as values."""

import dataclasses
import pickle
import re
from pathlib import Path
from typing import Any

import pydantic
import pytest
from support import numbered, opened, write

import dataset_rt as drt

TUPLES: list[tuple[Any, dict[str, Any]]] = [
    (drt.CacheInput, {"data": b"x", "metadata": {"a": 1}}),
    (drt.CachedSample, {"data": b"x", "metadata": {"a": 1}, "cache_id": 3, "sample_id": 4}),
    (drt.CacheWriteSuccess, {"source_name": "a", "path": Path("base/a")}),
    (drt.CacheWriteError, {"source_name": "a", "message": "why"}),
    (drt.CacheSourcesDatasetSuccess, {"dataset": "stands for one", "results": []}),
    (drt.CacheSourcesDatasetError, {"results": [drt.CacheWriteError("a", "why")], "message": "none"}),
]
OUTCOMES: list[tuple[Any, dict[str, Any]]] = [
    (drt.Ok, {"value": 1}),
    (drt.Err, {"error": "why"}),
    (drt.ManifestUpdateEntry, {"path": Path("m"), "cache_id": 1, "status": "updated"}),
    (drt.ManifestUpdateReport, {"entries": ()}),
    (drt.ManifestUpdateError, {"path": drt.AbsentManifestTarget("why"), "message": "m", "entries": ()}),
    (drt.AbsentManifestTarget, {"reason": "why"}),
]
CONFIGS: list[drt.ReaderConfig | drt.WriterConfig | drt.ShardCompression | drt.WriterProfilerConfig] = [
    drt.ReaderConfig(seed=2**64 - 1, prefetch_size=3, shuffle=False, validate_cache=True),
    drt.WriterConfig(num_processes=2, shard_compression=drt.ShardCompression(algo="lz4", ratio=2.5)),
    drt.ShardCompression(),
    drt.WriterProfilerConfig(enabled=True, path=Path("x.json")),
]


def name_of(value: Any) -> str:
    return getattr(value, "__name__", type(value).__name__)


@pytest.mark.parametrize(("kind", "fields"), TUPLES, ids=name_of)
def test_a02_records_are_named_tuples(kind: Any, fields: dict[str, Any]) -> None:
    record = kind(**fields)
    assert isinstance(record, tuple)
    assert record == tuple(fields.values()) == kind(*fields.values())
    assert record._fields == tuple(fields)
    assert record._asdict() == fields
    assert record._replace(**{record._fields[-1]: None}) == (*record[:-1], None)
    assert repr(record).startswith(f"{kind.__name__}({record._fields[0]}=")


@pytest.mark.parametrize(("kind", "fields"), TUPLES + OUTCOMES, ids=name_of)
def test_a02_pickles_name_the_api(kind: Any, fields: dict[str, Any]) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        pickled = pickle.dumps(kind(**fields), protocol)
        assert b"dataset_rt.api" in pickled
        assert pickle.loads(pickled) == kind(**fields)


def test_a02_records_match_by_position() -> None:
    match drt.CachedSample(b"x", {"a": 1}, 3, 4):
        case drt.CachedSample(data, {"a": a}, cache_id, sample_id):
            assert (data, a, cache_id, sample_id) == (b"x", 1, 3, 4)
        case _:
            pytest.fail("does not match")


@pytest.mark.parametrize(("kind", "fields"), OUTCOMES, ids=name_of)
def test_a02_outcomes_are_frozen_dataclasses(kind: Any, fields: dict[str, Any]) -> None:
    outcome = kind(**fields)
    assert dataclasses.asdict(outcome).keys() == fields.keys()
    assert outcome == kind(*fields.values())
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(outcome, next(iter(fields)), None)


def test_a02_result_is_a_generic_union_to_match_on() -> None:
    def read(result: drt.Result[int, str]) -> int | str:
        match result:
            case drt.Ok(value):
                return value
            case drt.Err(error):
                return error

    assert read(drt.Ok(1)) == 1
    assert read(drt.Err("why")) == "why"


@pytest.mark.parametrize("config", CONFIGS, ids=name_of)
def test_a02_configurations_are_frozen_models_that_round_trip(config: Any) -> None:
    assert isinstance(config, pydantic.BaseModel)
    assert pickle.loads(pickle.dumps(config)) == config
    assert b"dataset_rt.api" in pickle.dumps(config)
    assert type(config).model_validate(config.model_dump()) == config
    assert type(config).model_validate_json(config.model_dump_json()) == config
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        setattr(config, next(iter(type(config).model_fields)), None)


@pytest.mark.parametrize("config", CONFIGS, ids=name_of)
def test_a02_configurations_refuse_unknown_keys(config: Any) -> None:
    with pytest.raises(pydantic.ValidationError, match="no_such_key"):
        type(config)(**config.model_dump(), no_such_key=1)


@pytest.mark.parametrize("value", ["100", True, 1.0, None, b"1"])
@pytest.mark.parametrize(
    ("config", "field"),
    [
        (drt.ReaderConfig, "seed"),
        (drt.ReaderConfig, "prefetch_size"),
        (drt.WriterConfig, "num_processes"),
        (drt.WriterConfig, "prefetch_size"),
        (drt.WriterConfig, "max_shard_bytes"),
    ],
)
def test_a02_integers_are_not_coerced(config: Any, field: str, value: object) -> None:
    with pytest.raises(pydantic.ValidationError, match=field):
        config(**{"seed": 0} if config is drt.ReaderConfig and field != "seed" else {}, **{field: value})


@pytest.mark.parametrize("value", ["1.5", True, None])
def test_a02_floats_are_not_coerced(value: Any) -> None:
    with pytest.raises(pydantic.ValidationError):
        drt.ShardCompression(algo="lz4", ratio=value)
    with pytest.raises(pydantic.ValidationError):
        drt.WriterConfig(process_timeout_seconds=value)


@pytest.mark.parametrize("value", [1, 0, "true", None])
def test_a02_bools_are_not_coerced(value: Any) -> None:
    with pytest.raises(pydantic.ValidationError):
        drt.ReaderConfig(seed=1, shuffle=value)
    with pytest.raises(pydantic.ValidationError):
        drt.WriterProfilerConfig(enabled=value)


def test_a02_an_int_is_a_float_and_a_string_a_path() -> None:
    assert drt.ShardCompression(algo="lz4", ratio=2).ratio == 2.0
    assert drt.WriterConfig(process_timeout_seconds=5).process_timeout_seconds == 5.0
    assert drt.WriterProfilerConfig(path="p.json").path == Path("p.json")  # type: ignore[arg-type]
    with pytest.raises(pydantic.ValidationError, match="path"):
        drt.WriterProfilerConfig(path=b"p.json")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", "the directory '.'"),
        (".", "the directory '.'"),
        ("/", "the directory '/'"),
        (Path(), "the directory '.'"),
        ("a\0b", r"a NUL in 'a\x00b'"),
    ],
    ids=["empty", "working directory", "root", "empty path", "NUL"],
)
def test_a02_a_path_that_names_no_file_is_refused(path: Any, found: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=re.escape(f"path must name a file, found {found}")):
        drt.WriterProfilerConfig(path=path)


@pytest.mark.parametrize(
    ("config", "field", "good", "bad"),
    [
        (drt.ReaderConfig, "seed", [0, 2**64 - 1], [-1, 2**64]),
        (drt.ReaderConfig, "prefetch_size", [1, 2**63 - 1], [0, -1, 2**63]),
        (drt.WriterConfig, "prefetch_size", [1, 2**63 - 1], [0, -1, 2**63]),
        (drt.WriterConfig, "max_shard_bytes", [1, 2**63 - 1], [0, -1, 2**63]),
        (drt.WriterConfig, "num_processes", [0, 5], [-1]),
        (drt.WriterConfig, "process_timeout_seconds", [0.001, 1e9], [0.0, -1.0, float("inf"), float("nan")]),
    ],
)
def test_a02_bounds_hold_at_construction(config: Any, field: str, good: list[Any], bad: list[Any]) -> None:
    others = {"seed": 0} if config is drt.ReaderConfig and field != "seed" else {}
    for value in good:
        assert getattr(config(**others, **{field: value}), field) == value
    for value in bad:
        with pytest.raises(pydantic.ValidationError, match=field):
            config(**others, **{field: value})


@pytest.mark.parametrize("ratio", [0.0, -1.0, float("inf"), float("nan")])
def test_a02_ratio_is_finite_and_positive(ratio: float) -> None:
    with pytest.raises(pydantic.ValidationError, match="ratio"):
        drt.ShardCompression(algo="lz4", ratio=ratio)


def test_a02_ratio_is_one_without_compression() -> None:
    assert drt.ShardCompression(algo="none", ratio=1).ratio == 1.0
    with pytest.raises(pydantic.ValidationError, match=r"ratio must be 1\.0"):
        drt.ShardCompression(ratio=2.0)


def test_a02_algo_is_one_of_two_literals() -> None:
    with pytest.raises(pydantic.ValidationError, match="algo"):
        drt.ShardCompression(algo="zstd")  # type: ignore[arg-type]


def test_a02_samples_from_a_dataset_are_the_same_kind_of_tuple(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    [sample] = opened(runtime, write(runtime, tmp_path, numbered("a", 1)))
    assert type(sample) is drt.CachedSample
    data, metadata, cache_id, sample_id = sample
    assert sample == drt.CachedSample(data, metadata, cache_id, sample_id)
    assert sample._replace(data=b"y").data == b"y"
    assert sample._asdict()["metadata"] == {"number": 0}
    assert pickle.loads(pickle.dumps(sample)) == sample
    with pytest.raises(TypeError, match="unhashable"):
        hash(sample)
