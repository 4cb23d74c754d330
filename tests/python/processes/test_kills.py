"""C9 with worker processes: whenever one is killed, nothing half-written shows, and the same call then does its work."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from processes.sources import Killed, Numbered
from support import QUIET

import dataset_rt as drt

ROWS = 400
# Rows from the first to the last, then moments while the files are completed, synced and published.
MOMENTS: list[int | float] = [*range(0, ROWS, 50), *[moment * 0.0005 for moment in range(8)]]


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_c09_after_a_worker_process_was_killed_the_same_call_does_its_work(
    runtime: drt.DatasetRuntime, tmp_path: Path
) -> None:
    config = QUIET.model_copy(update={"num_processes": 1, "max_shard_bytes": 5000})
    serial = QUIET.model_copy(update={"max_shard_bytes": 5000})
    runtime.write_cache(Numbered("a", ROWS), tmp_path, writer_config=serial)
    expected = tree(tmp_path / "a")

    def kill_and_repeat(moment: int | float) -> str:
        base = tmp_path / f"at {moment}"
        source = Killed("a", ROWS, tmp_path / f"{moment}.flag", moment)
        [killed] = runtime.write_cache(source, base, writer_config=config)
        published = (base / "a").exists()
        assert not published or tree(base / "a") == expected
        # The process that watches over it has cleaned up already.
        staging = base / "tmp"
        assert not staging.exists() or list(staging.iterdir()) == []
        [again] = runtime.write_cache(source, base, writer_config=config)
        assert isinstance(again, drt.CacheWriteSuccess) != published
        assert tree(base) == {f"a/{name}": content for name, content in expected.items()}
        return getattr(killed, "message", "written")

    with ThreadPoolExecutor(2) as threads:
        messages = list(threads.map(kill_and_repeat, MOMENTS))
    # A cache may be finished before the last moments come.
    assert all(message == "written" or "was killed by signal 9 (SIGKILL)" in message for message in messages)
    assert sum(message != "written" for message in messages) >= 8
