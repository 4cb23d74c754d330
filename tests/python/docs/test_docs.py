"""Runs every Python block of the README and the manual, and the examples in docstrings; follows every relative link."""

import doctest
import importlib
import logging
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dataset_rt

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(?P<language>\S*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
# A block that is a program of its own begins with its name.
PROGRAM = re.compile(r"# (?P<name>\w+\.py)\n")
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def blocks(page: Path) -> list[tuple[int, str]]:
    """Python blocks of a page, each with the number of its first line."""
    text = page.read_text(encoding="utf-8")
    found = [match for match in BLOCK.finditer(text) if match["language"] == "python"]
    return [(text.count("\n", 0, match.start("body")), match["body"]) for match in found]


def anchors(page: Path) -> set[str]:
    """What can stand behind `#` in a link to the page."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(autouse=True)
def own_log_handlers() -> Iterator[None]:
    """What a page adds to the log of loaders must not listen to the tests behind it."""
    logger = logging.getLogger("dataset_rt.loader")
    before = (list(logger.handlers), logger.level, logger.propagate)
    yield
    logger.handlers[:], level, logger.propagate = before
    logger.setLevel(level)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_blocks_of_a_page_run_as_one_program(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, body in blocks(page):
        if program := PROGRAM.match(body):
            run_program(tmp_path / program["name"], body)
            continue
        # Empty lines in front give errors the line numbers of the page.
        exec(compile("\n" * line + body, str(page), "exec"), namespace)


def run_program(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run([sys.executable, file.name], cwd=file.parent, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


TEACHING = ["README.md", *(f"docs/{name}.md" for name in ("quickstart", "determinism", "python-api"))]
TEACHING += [f"docs/guides/{name}.md" for name in ("existing-caches", "pytorch", "writing")]


@pytest.mark.parametrize("name", TEACHING)
def test_pages_that_teach_have_blocks(name: str) -> None:
    assert blocks(ROOT / name)


def test_examples_in_docstrings_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [module.name for module in pkgutil.walk_packages(dataset_rt.__path__, "dataset_rt.")]
    results = [doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS) for name in names]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) > 0


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_lead_somewhere(page: Path) -> None:
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for target in LINK.findall(text):
        path, _, anchor = target.partition("#")
        if "://" in path:
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []
