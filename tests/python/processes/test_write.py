"""Writing in worker processes through the public API: the same results and bytes as in one process."""

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import sources
from processes.sources import Numbered

import dataset_rt as drt
from dataset_rt.processes import supervisor


def config(num_processes: int, **settings: Any) -> drt.WriterConfig:
    return drt.WriterConfig(num_processes=num_processes, show_progress=False, **settings)


def write(
    runtime: drt.DatasetRuntime, base: Path, written: Any, *, num_processes: int = 2, **settings: Any
) -> list[drt.CacheWriteResult]:
    return runtime.write_cache(written, base, writer_config=config(num_processes, **settings))


def files(base: Path) -> dict[str, bytes]:
    return {str(file.relative_to(base)): file.read_bytes() for file in base.rglob("*") if file.is_file()}


def message(result: drt.CacheWriteResult) -> str:
    assert isinstance(result, drt.CacheWriteError)
    return result.message


class Nameless:
    def __iter__(self) -> Iterator[Any]:
        yield b"", {}


class OddName(Numbered):
    name = property(lambda _self: 1 / 0)

    def __init__(self) -> None:
        pass


class NotIterable:
    name = "not iterable"
    __iter__ = None


@pytest.mark.parametrize("algo", ["none", "lz4"])
def test_c14_bytes_and_results_are_those_of_a_serial_write(
    runtime: drt.DatasetRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algo: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").mkdir()
    written = [
        Numbered("a", 700),
        Numbered("empty", 0),
        sources.Mixed("mixed", 2),
        Numbered("", 1),
        Numbered("../b", 1),
        Numbered("b", 1000, fingerprint="v1"),
        Nameless(),
        OddName(),
        Numbered("odd fingerprint", 3, fingerprint=5),  # type: ignore[arg-type]
        sources.Failing("failing", LookupError("no door")),
        NotIterable(),
        Numbered("données", 3),
        Numbered("taken", 3),
    ]
    settings = {"shard_compression": drt.ShardCompression(algo=algo), "max_shard_bytes": 50_000}
    results = []
    for number in (0, 3):
        # The same relative directory, so that paths in results and messages are the same too.
        Path("caches").mkdir()
        Path("caches/taken").mkdir()
        results.append(write(runtime, Path("caches"), written, num_processes=number, **settings))
        Path("caches").rename(f"caches{number}")

    assert results[0] == results[1]
    assert [type(result) for result in results[1]].count(drt.CacheWriteSuccess) == 3
    assert files(Path("caches0")) == files(Path("caches3"))
    assert list(Path("caches3/tmp").iterdir()) == []


def test_c11_payloads_are_made_in_children_with_the_threads_of_the_runtime(tmp_path: Path) -> None:
    with drt.DatasetRuntime(num_workers=3) as runtime:
        [result] = write(runtime, tmp_path, sources.Introspecting("self"))
        assert isinstance(result, drt.CacheWriteSuccess)
        [sample] = runtime.cached_dataset([result.path], reader_config=drt.ReaderConfig(seed=1, shuffle=False))
    assert sample.metadata == {"parent": os.getpid(), "threads": 3}


def test_c11_profiling_stays_in_this_process(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    profiler = drt.WriterProfilerConfig(enabled=True, path=tmp_path / "profile.json")
    [result] = write(runtime, tmp_path / "caches", sources.Introspecting("self"), profiler=profiler)
    assert isinstance(result, drt.CacheWriteSuccess)
    [sample] = runtime.cached_dataset([result.path], reader_config=drt.ReaderConfig(seed=1, shuffle=False))
    assert sample.metadata["parent"] == os.getppid()
    assert profiler.path.exists()


def test_c02_duplicates_are_refused_before_anything_starts(
    runtime: drt.DatasetRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "Child", None)
    with pytest.raises(ValueError, match="duplicate generated cache path"):
        write(runtime, tmp_path / "caches", [Numbered("a", 1), Numbered("A", 1)])
    assert list(tmp_path.iterdir()) == []


def test_c11_no_process_is_started_for_what_needs_none(
    runtime: drt.DatasetRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "Child", None)
    (tmp_path / "a").mkdir()
    assert write(runtime, tmp_path, []) == []
    # Neither can be pickled; what is said is what a serial write says.
    taken, bad = write(runtime, tmp_path, [Local("a"), Local("tmp")])
    assert "already exists" in message(taken)
    assert "tmp" in message(bad)


class Local(Numbered):
    def __init__(self, name: str) -> None:
        super().__init__(name, 1)
        self.door = lambda: None


def test_c11_unpicklable_source_is_reported_for_itself(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    first, second = write(runtime, tmp_path, [Local("local"), Numbered("a", 3)])
    assert "cannot be pickled" in message(first)
    assert second == drt.CacheWriteSuccess("a", tmp_path / "a")
    assert not (tmp_path / "local").exists()


def test_c11_name_is_the_one_that_was_checked(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    assert write(runtime, tmp_path, sources.Renamed("a", 3)) == [drt.CacheWriteSuccess("a", tmp_path / "a")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "tmp"]


@pytest.mark.parametrize("neighbour", [sources.Endless, sources.Stubborn])
def test_c11_death_of_one_stops_the_others_and_leaves_nothing(
    runtime: drt.DatasetRuntime, tmp_path: Path, neighbour: Any
) -> None:
    dying = sources.Dying("dying", tmp_path / "busy.writing", 5)
    busy, died, waiting = write(runtime, tmp_path, [neighbour("busy", tmp_path), dying, Numbered("waiting", 3)])

    assert "ended with exit code 5" in message(died)
    assert re.match(r"not run: .*'dying'", message(busy))
    assert re.match(r"not run: .*'dying'", message(waiting))
    assert list((tmp_path / "tmp").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["busy.writing", "tmp"]


def test_c11_timeout_leaves_nothing(
    runtime: drt.DatasetRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag = tmp_path / "slow.writing"
    late = itertools.count(10_000)
    hooks = supervisor.Hooks

    def with_own_clock(**given: Any) -> supervisor.Hooks:
        return hooks(**given, clock=lambda: next(late) if flag.exists() else 0)

    monkeypatch.setattr("dataset_rt.processes.write.Hooks", with_own_clock)
    [result] = write(runtime, tmp_path, sources.Stubborn("slow", tmp_path), process_timeout_seconds=5000.0)
    assert "process_timeout_seconds=5000" in message(result)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_c06_exit_of_a_source_ends_the_call(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    written = [Numbered("a", 3), sources.Failing("leaving", SystemExit(7)), Numbered("b", 3)]
    with pytest.raises(SystemExit) as caught:
        write(runtime, tmp_path, written, num_processes=1)
    assert caught.value.code == 7
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "tmp"]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_c16_datasets_come_from_caches_that_children_wrote(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    written = [Numbered("a", 4), Numbered("empty", 0), Numbered("b", 3)]
    result = runtime.from_cache_sources(
        written, tmp_path, reader_config=drt.ReaderConfig(seed=1, shuffle=False), writer_config=config(2)
    )
    assert isinstance(result, drt.CacheSourcesDatasetSuccess)
    assert [type(each) for each in result.results].index(drt.CacheWriteError) == 1
    assert [(sample.metadata["name"], sample.sample_id) for sample in result.dataset] == [
        *[("a", row) for row in range(4)],
        *[("b", row) for row in range(3)],
    ]


def test_c15_reuse_is_decided_without_processes_as_in_a_serial_call(
    runtime: drt.DatasetRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(runtime, tmp_path, [Numbered("a", 4), Numbered("b", 3, fingerprint="v1")])
    monkeypatch.setattr(supervisor, "Child", None)
    again = [Local("a"), Numbered("b", 9, fingerprint="v2")]
    results = [
        runtime.from_cache_sources(
            again, tmp_path, reader_config=drt.ReaderConfig(seed=1), writer_config=config(number)
        ).results
        for number in (0, 2)
    ]
    assert results[0] == results[1]
    reused, stale = results[1]
    assert reused == drt.CacheWriteSuccess("a", tmp_path / "a")
    assert "v2" in message(stale)


@pytest.mark.parametrize("number", [0, 1])
def test_c08_a_cache_that_somebody_else_publishes_meanwhile_is_reused_or_refused(
    runtime: drt.DatasetRuntime, tmp_path: Path, number: int
) -> None:
    [refused] = write(runtime, tmp_path, sources.Overtaken("a", tmp_path), num_processes=number)
    assert "already exists" in message(refused)
    result = runtime.from_cache_sources(
        sources.Overtaken("b", tmp_path),
        tmp_path,
        reader_config=drt.ReaderConfig(seed=1),
        writer_config=config(number),
    )
    assert isinstance(result, drt.CacheSourcesDatasetSuccess)
    assert len(result.dataset) == 5


def test_c15_fingerprint_is_the_one_that_was_read_before(runtime: drt.DatasetRuntime, tmp_path: Path) -> None:
    write(runtime, tmp_path, sources.Renamed("a", 3, fingerprint="v1"))
    result = runtime.from_cache_sources(
        Numbered("a", 3, fingerprint="v2"), tmp_path, reader_config=drt.ReaderConfig(seed=1), writer_config=config(0)
    )
    assert "v1" in message(result.results[0])


def test_c11_closed_runtime_is_refused(tmp_path: Path) -> None:
    runtime = drt.DatasetRuntime(num_workers=1)
    runtime.close()
    with pytest.raises(RuntimeError, match="closed"):
        write(runtime, tmp_path, Numbered("a", 1))


def test_c11_a_cache_that_is_there_is_a_success_although_its_process_died(
    runtime: drt.DatasetRuntime, tmp_path: Path
) -> None:
    lost, waiting = write(
        runtime, tmp_path, [sources.PublishedAndLost("lost", tmp_path), Numbered("waiting", 3)], num_processes=1
    )
    assert lost == drt.CacheWriteSuccess("lost", tmp_path / "lost")
    assert re.match(r"not run: .*'lost'.*exit code 3", message(waiting))


@pytest.mark.parametrize(("exception", "status"), [(SystemExit(7), 7), (ValueError("in the child"), 1)], ids=repr)
def test_b04_a_child_that_a_source_forks_does_not_speak_for_its_worker_process(
    runtime: drt.DatasetRuntime, tmp_path: Path, exception: BaseException, status: int
) -> None:
    [result] = write(runtime, tmp_path, sources.Forking("a", exception))
    assert result == drt.CacheWriteSuccess("a", tmp_path / "a")
    reader = drt.ReaderConfig(seed=1, shuffle=False)
    assert [sample.metadata for sample in runtime.cached_dataset([tmp_path / "a"], reader_config=reader)] == [
        {"status": status}
    ]
