"""C9 with worker processes: whenever one of them or the caller is killed, nothing half-written shows, and the same call then
does its work. Kills at every single file operation are `tests/write_kills.rs`."""

from pathlib import Path

import pytest
from processes import kills
from processes.watching import program

PROGRAM = Path(__file__).with_name("kills.py")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("victim", ["child", "parent"])
@pytest.mark.parametrize("parts", [(0, 1), (2, 3)])
def test_c09_after_a_kill_at_any_time_the_same_call_does_its_work(
    tmp_path: Path, victim: str, parts: tuple[int, int]
) -> None:
    folders = [tmp_path / str(part) for part in parts]
    for folder in folders:
        folder.mkdir()
    first, second = (
        program(PROGRAM, str(folder), victim, str(part)) for folder, part in zip(folders, parts, strict=True)
    )
    with first as one, second as other:
        for running, part in [(one, parts[0]), (other, parts[1])]:
            out, errors = running.communicate(timeout=550)
            assert (running.returncode, errors) == (0, "")
            at_rows, _later = (int(count) for count in out.split())
            assert at_rows == sum(isinstance(at, int) for at, _ in kills.moments(part))


def test_c09_there_are_many_kills() -> None:
    at_rows = [at for part in range(kills.PARTS) for at, _ in kills.moments(part) if isinstance(at, int)]
    assert len(at_rows) * 2 >= 200
    assert set(at_rows) == set(range(kills.ROWS + 1))
