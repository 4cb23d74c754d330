"""A4: type information, checked against the runtime."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dataset_rt

PACKAGE = Path(dataset_rt.__file__).parent

PROGRAMS = Path(__file__).parents[1] / "typing"


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


@pytest.fixture(params=["users.py", "users_torch.py"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A program of users, away from the configuration of this project."""
    if request.param == "users_torch.py":
        pytest.importorskip("torch.utils.data")
    shutil.copy(PROGRAMS / request.param, tmp_path)
    return str(request.param)


def test_a04_mypy_gives_users_the_documented_types(program: str, tmp_path: Path) -> None:
    # Torch takes a minute to look through, once.
    run("mypy", "--strict", "--cache-dir", str(PROGRAMS.parents[2] / ".mypy_cache" / "users"), program, folder=tmp_path)


def test_a04_basedpyright_gives_users_the_documented_types(program: str, tmp_path: Path) -> None:
    pytest.importorskip("basedpyright")
    config = {
        "extraPaths": [str(PACKAGE.parent)],
        "typeCheckingMode": "standard",
        "reportUnnecessaryTypeIgnoreComment": "error",
        "include": [program],
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    run("basedpyright", "--pythonpath", sys.executable, folder=tmp_path)
