"""The environments of the candidates: each peer is installed from the package index; one that cannot be is told, not fatal."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

from compare.candidates import ENTRIES

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "target" / "compare"
PEERS = TARGET / "peers"
PUBLISHED = ROOT / "target" / "interop"

#: The least patient way to ask the index: without a network the comparison goes on with what there is.
PIP = ("-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "15")


class Environments:
    """Where the Python of each candidate is, and why some have none."""

    def __init__(self, wanted: list[str]) -> None:
        self.missing: dict[str, str] = {}
        self.python = {
            "ours": Path(sys.executable),
            "published": PUBLISHED / "bin" / "python",
            "peers": PEERS / "bin" / "python",
        }
        entries = [ENTRIES[name] for name in wanted]
        if any(entry.environment == "published" for entry in entries):
            done = subprocess.run(
                [ROOT / ".ci" / "published", sys.executable], cwd=ROOT, capture_output=True, text=True, check=False
            )
            if done.returncode:
                self.missing |= {e.name: last_line(done.stdout) for e in entries if e.environment == "published"}
        self._create_peers()
        for entry in entries:
            if entry.environment == "peers" and entry.package and (why := self._install(entry.package)):
                self.missing[entry.name] = why

    def _create_peers(self) -> None:
        """Uses what is installed beside this interpreter, such as PyTorch, and adds to it."""
        if not self.python["peers"].exists():
            print(f"creating {PEERS}", flush=True)
            subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        beside = PEERS / "lib" / version / "site-packages" / "beside.pth"
        beside.write_text(sysconfig.get_paths()["purelib"] + "\n")

    def _install(self, package: str) -> str | None:
        installed = PEERS / f".installed-{package}"
        if installed.exists():
            return None
        print(f"installing {package}", flush=True)
        done = subprocess.run([self.python["peers"], *PIP, package], capture_output=True, text=True, check=False)
        if done.returncode:
            return f"cannot be installed: {last_line(done.stderr)}"
        installed.touch()
        return None

    def versions(self) -> dict[str, str]:
        """What was compared."""
        packages = sorted(
            {entry.package for entry in ENTRIES.values() if entry.package and entry.environment == "peers"}
        )
        code = (
            "import importlib.metadata as m, json, sys\n"
            "found = {d.metadata['Name'].lower().replace('_', '-'): d.version for d in m.distributions()}\n"
            "print(json.dumps({name: found[name] for name in sys.argv[1:] if name in found}))"
        )
        done = subprocess.run([self.python["peers"], "-c", code, *packages], capture_output=True, text=True, check=True)
        found: dict[str, str] = json.loads(done.stdout)
        return found


def last_line(text: str) -> str:
    """What a program said at its end."""
    return (text.strip().splitlines() or ["it said nothing"])[-1]
