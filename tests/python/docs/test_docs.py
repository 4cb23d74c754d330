"""Runs every Python and console block of the README and the manual, and the examples in docstrings; follows every relative
link."""

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


def blocks(page: Path) -> list[tuple[str, int, str]]:
    """Python and console blocks of a page, each with its language and the number of its first line."""
    text = page.read_text(encoding="utf-8")
    found = [match for match in BLOCK.finditer(text) if match["language"] in ("python", "console")]
    return [(match["language"], text.count("\n", 0, match.start("body")), match["body"]) for match in found]


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
    for language, line, body in blocks(page):
        if language == "console":
            run_console(body)
            continue
        if program := PROGRAM.match(body):
            run_program(tmp_path / program["name"], body)
            continue
        # Empty lines in front give errors the line numbers of the page.
        exec(compile("\n" * line + body, str(page), "exec"), namespace)


def run_console(body: str) -> None:
    """Run the commands behind `$`, and compare what they print with the lines below them, where `...` is anything."""
    environment = os.environ | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
    }
    assert body.startswith("$ ")
    for part in body.removeprefix("$ ").split("\n$ "):
        command, _, expected = part.partition("\n")
        done = subprocess.run(
            ["/bin/sh", "-c", command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        expected = expected if not expected or expected.endswith("\n") else f"{expected}\n"
        assert doctest.OutputChecker().check_output(expected, done.stdout, doctest.ELLIPSIS), (
            f"$ {command}\n{done.stdout}"
        )


def run_program(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run([sys.executable, file.name], cwd=file.parent, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


TEACHING = ["README.md", *(f"docs/{name}.md" for name in ("quickstart", "determinism", "python-api"))]
TEACHING += [
    f"docs/guides/{name}.md" for name in ("command-line", "existing-caches", "moving", "weights", "pytorch", "writing")
]


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
