"""Programs whose worker processes have to end with them. Run as `lives.py HOW BASE WHAT`."""

import functools
import os
import sys
import threading
import time
from pathlib import Path

from processes import fakes

from dataset_rt.processes.supervisor import Supervisor, Task


def write(base: Path, what: str) -> None:
    writer = functools.partial(fakes.make_writer, base)
    tasks = [
        Task(number, f"s{number}", None, fakes.Calls(getattr(fakes, what), (base / f"flag{number}",)))
        for number in range(2)
    ]
    Supervisor(writer, num_processes=2, timeout_seconds=600).run(tasks)


def main(how: str, base: Path, what: str) -> None:
    if how == "daemon":
        threading.Thread(target=write, args=(base, what), daemon=True).start()
        while len(list(base.glob("flag?"))) < 2:
            time.sleep(0.01)
    elif how == "forked":
        # Keeps the parent's ends of all channels open when the parent is gone.
        threading.Thread(target=fork_later, args=(base,), daemon=True).start()
        write(base, what)
    else:
        write(base, what)


def fork_later(base: Path) -> None:
    while len(list(base.glob("flag?"))) < 2:
        time.sleep(0.01)
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
        os._exit(0)
    partial = base / "forked.partial"
    partial.write_text(str(pid))
    partial.rename(base / "forked")


if __name__ == "__mp_main__" and sys.argv[1] == "slow":
    # A module that is imported for long, in a worker process.
    fakes.announce_and_wait(Path(sys.argv[2], f"importing{os.getpid()}"), Path(sys.argv[2], "go"))

if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
