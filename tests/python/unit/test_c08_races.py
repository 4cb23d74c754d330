"""C8, C16: any number of processes may write the same names at once; one cache is published, whole."""

import json
from pathlib import Path

from support import run_python

PROCESSES = 8
ROUNDS = 20

# Forks before there is any runtime, so that every process has one of its own without the time to start an interpreter.
RACE = """
import json, multiprocessing, os, sys
from pathlib import Path
import dataset_rt as drt
from support import QUIET, numbered

base, processes, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
context = multiprocessing.get_context("fork")

def race(number, barrier):
    told = []
    with drt.DatasetRuntime(num_workers=1) as runtime:
        for turn in range(rounds):
            barrier.wait(60)
            [written] = runtime.write_cache(numbered(f"written{turn}", 40), base, writer_config=QUIET)
            barrier.wait(60)
            reader_config = drt.ReaderConfig(seed=1, shuffle=False, validate_cache=True)
            shared = runtime.from_cache_sources(
                [numbered(f"shared{turn}", 40), numbered("all", 30)], base, reader_config=reader_config, writer_config=QUIET
            )
            rows = [sample.metadata["number"] for sample in shared.dataset]
            told.append([getattr(written, "message", "written"), [str(result.path) for result in shared.results], rows])
    (base / f"{number}.json").write_text(json.dumps(told))

if __name__ == "__main__":
    barrier = context.Barrier(processes)
    children = [context.Process(target=race, args=(number, barrier)) for number in range(processes)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
"""


def test_c08_of_processes_racing_for_a_name_one_publishes_and_all_can_use_it(tmp_path: Path) -> None:
    done = run_python(RACE, str(tmp_path), str(PROCESSES), str(ROUNDS), timeout=400)
    assert (done.returncode, done.stderr) == (0, "")
    told = [json.loads((tmp_path / f"{number}.json").read_text()) for number in range(PROCESSES)]
    for turn in range(ROUNDS):
        messages = [rounds[turn][0] for rounds in told]
        assert messages.count("written") == 1
        assert sum("already exists: a complete cache" in message for message in messages) == PROCESSES - 1
        for rounds in told:
            assert rounds[turn][1:] == [
                [str(tmp_path / f"shared{turn}"), str(tmp_path / "all")],
                [*range(40), *range(30)],
            ]
    assert list((tmp_path / "tmp").iterdir()) == []
    expected = {f"{kind}{turn}" for kind in ("written", "shared") for turn in range(ROUNDS)}
    expected |= {f"{number}.json" for number in range(PROCESSES)} | {"all", "tmp"}
    assert {path.name for path in tmp_path.iterdir()} == expected
