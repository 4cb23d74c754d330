"""C9: real signals at random times; after each the same call does its work. Kills at every single file operation are
`tests/write_kills.rs`."""

from pathlib import Path

from support import run_python

# Each write runs in a process forked before there is any runtime.
KILLS = """
import os, random, signal, sys, time
from pathlib import Path
import dataset_rt as drt
from support import QUIET, numbered

folder, wanted = Path(sys.argv[1]), int(sys.argv[2])
sources = [numbered("a", 3000), numbered("b", 2000, size=300), numbered("c", 500, size=3000)]
config = QUIET.model_copy(update={"max_shard_bytes": 40_000})

def tree(base):
    return {str(path.relative_to(base)): path.read_bytes() for path in base.rglob("*") if path.is_file()}

def start(base):
    pid = os.fork()
    if pid == 0:
        try:
            with drt.DatasetRuntime(num_workers=2) as runtime:
                results = runtime.write_cache(sources, base, writer_config=config)
            good = all(isinstance(result, drt.CacheWriteSuccess) or "complete cache" in result.message for result in results)
            os._exit(0 if good else 3)
        finally:
            os._exit(4)
    return pid

def end(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

started = time.monotonic()
assert end(start(folder / "whole")) == 0
seconds = time.monotonic() - started
expected = tree(folder / "whole")
chance, killed = random.Random(1), 0
for turn in range(100 * wanted):
    base = folder / str(turn)
    pid = start(base)
    time.sleep(chance.uniform(0, seconds))
    os.kill(pid, signal.SIGKILL)
    killed += end(pid) == -signal.SIGKILL
    for name in "abc":
        if (base / name).exists():
            assert tree(base / name) == tree(folder / "whole" / name), (turn, name)
    assert end(start(base)) == 0, turn
    assert tree(base) == expected, turn
    assert list((base / "tmp").iterdir()) == [], turn
    if killed == wanted:
        break
print(killed)
"""


def test_c09_after_kills_at_random_times_the_same_call_does_its_work(tmp_path: Path) -> None:
    done = run_python(KILLS, str(tmp_path), "40", timeout=400)
    assert (done.returncode, done.stdout, done.stderr) == (0, "40\n", "")
