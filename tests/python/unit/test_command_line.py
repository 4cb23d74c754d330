"""The command line: what each command says to people and to programs, and its exit status."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import Listed, break_record, numbered, write

import dataset_rt as drt
from dataset_rt.command_line.output import printable, size
from dataset_rt.command_line.program import run

VERSION_2 = Path(__file__).parents[2] / "fixtures" / "version_2"
ODD = "a\x1b[2J\nb"


@pytest.fixture
def base(runtime: drt.DatasetRuntime, tmp_path: Path) -> Path:
    """Caches `few`, of three odd samples, and `many`."""
    few = Listed(
        "few",
        [
            (b"text", {"label": 1, "score": 0.5, "name": ODD, "good": True}),
            (bytes(range(200, 240)), {"label": -2, "score": float("nan"), "name": "x" * 100, "good": False}),
            (b"", {"label": 3, "score": float("-inf"), "name": "", "good": True}),
        ],
    )
    few.fingerprint = "v1"  # type: ignore[attr-defined]
    write(runtime, tmp_path, few, shard_compression=drt.ShardCompression(algo="lz4"))
    write(runtime, tmp_path, numbered("many", 3000, size=1000), max_shard_bytes=1_000_000)
    return tmp_path


def json_lines(text: str) -> list[dict[str, Any]]:
    return [
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON")) for line in text.splitlines()
    ]


def environment(**more: str) -> dict[str, str]:
    """That of this process, with its search path."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    # With buffers, as they are unless somebody asks for none.
    return os.environ | {"PYTHONPATH": path, "PYTHONUNBUFFERED": ""} | more


def program(*arguments: str, encoding: str = "utf-8", **options: Any) -> subprocess.Popen[Any]:
    """Start the command line in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "dataset_rt", *arguments], env=environment(PYTHONIOENCODING=encoding), **options
    )


def test_info_tells_what_a_cache_is(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["info", "--json", str(base / "few"), str(base / "many")]) == 0
    few, many = json_lines(capsys.readouterr().out)
    files = [file for file in (base / "few").rglob("*") if file.is_file()]
    manifest = json.loads((base / "few" / "manifest.json").read_text())
    assert few == {
        "path": str(base / "few"),
        "error": None,
        "format_version": 3,
        "source_name": "few",
        "cache_id": manifest["cache_id"],
        "fingerprint": "v1",
        "rows": 3,
        "payload_bytes": 44,
        "file_bytes": sum(file.stat().st_size for file in files),
        "shards": 1,
        "compression": ["lz4"],
        "schema": [
            {"name": "good", "kind": "bool"},
            {"name": "label", "kind": "int"},
            {"name": "name", "kind": "string"},
            {"name": "score", "kind": "float"},
        ],
        "record_checksums": True,
    }
    assert (many["rows"], many["payload_bytes"], many["shards"]) == (3000, 3_000_000, 4)
    assert (many["compression"], many["fingerprint"]) == (["none"], None)

    assert run(["info", str(base / "few")]) == 0
    told = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[1:] if "cache id" not in line)
    assert told["rows"] == "3"
    assert told["columns"] == "good: bool, label: int, name: string, score: float"
    assert (told["compression"], told["fingerprint"]) == ("lz4", "v1")


def test_info_tells_that_version_2_has_no_id(capsys: pytest.CaptureFixture[str]) -> None:
    caches = [str(path.parent) for path in sorted(VERSION_2.rglob("manifest.json"))]
    assert run(["info", "--json", *caches]) == 0
    found = json_lines(capsys.readouterr().out)
    assert {(cache["format_version"], cache["cache_id"], cache["record_checksums"]) for cache in found} == {
        (2, None, False)
    }


@pytest.mark.parametrize("command", ["info", "verify"])
def test_what_is_no_cache_is_told_and_the_next_path_is_looked_at(
    base: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "--json", str(base / "absent"), str(base), str(base / "few")]) == 1
    told = capsys.readouterr()
    absent, empty, fine = json_lines(told.out)
    assert absent["error"] == f"{base / 'absent'}: cannot open: No such file or directory"
    assert empty["error"].startswith(f"{base}: missing manifest: expected a complete cache")
    assert told.err == f"error: {absent['error']}\nerror: {empty['error']}\n"
    assert (fine["path"], fine["error"]) == (str(base / "few"), None)


@pytest.mark.parametrize("command", ["info", "verify"])
def test_the_place_of_unfinished_caches_among_caches_is_passed_over(
    base: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    everything = sorted(str(path) for path in base.iterdir())
    assert str(base / "tmp") in everything
    assert run([command, *everything]) == 0
    assert capsys.readouterr().err == f"{base / 'tmp'}: passed over, unfinished caches lie there\n"
    # Alone it is what was asked for.
    assert run([command, str(base / "tmp")]) == 1
    assert "missing manifest" in capsys.readouterr().err


def test_verify_names_what_is_damaged_in_each_cache(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(base / "few", base / "fine")
    break_record(base / "many", 1234)
    metadata = bytearray((base / "few" / "metadata.arrow").read_bytes())
    metadata[len(metadata) // 2] ^= 1
    (base / "few" / "metadata.arrow").write_bytes(metadata)

    paths = [str(base / name) for name in ("few", "many", "fine")]
    assert run(["verify", *paths]) == 1
    told = capsys.readouterr()
    assert told.out == f"{paths[0]}: not ok\n{paths[1]}: not ok\n{paths[2]}: ok\n"
    few, many = told.err.splitlines()
    assert few.startswith(f"error: {base / 'few' / 'metadata.arrow'}: ")
    assert many.startswith("error: sample 1234 of cache ")
    assert str(base / "many" / "shards" / "000001.bin") in many

    assert run(["verify", "--json", *paths]) == 1
    assert [line["ok"] for line in json_lines(capsys.readouterr().out)] == [False, False, True]


@pytest.mark.parametrize(("number", "status"), [("0", 2), ("1025", 2), ("1", 0)])
def test_verify_takes_a_number_of_threads(
    base: Path, number: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", str(base / "few"), "--num-workers", number]) == status
    assert (f"num_workers must be 1 ... 1024, found {number}" in capsys.readouterr().err) == (status == 2)


def test_verify_shows_progress_on_a_terminal_and_takes_it_away(base: Path) -> None:
    ours, theirs = pty.openpty()
    process = program("verify", str(base / "many"), stderr=theirs, stdout=subprocess.PIPE)
    os.close(theirs)
    drawn = b""
    try:
        while piece := os.read(ours, 1 << 16):
            drawn += piece
    except OSError:  # How the end is told.
        pass
    os.close(ours)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out.decode()) == (0, f"{base / 'many'}: ok\n")
    assert b"[1/1] many: " in drawn
    assert b"% of 3.1 MB" in drawn
    assert drawn.endswith(b"\x1b[2K")


def test_head_shows_the_first_samples(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["head", str(base / "few"), "-n", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "sample_id  bytes  good   label  name                                      score  data",
        '0          4      True   1      a\\x1b[2J\\nb                               0.5    "text"',
        f"1          40     False  -2     {'x' * 37}...  nan    {bytes(range(200, 216)).hex(' ')}...",
    ]
    assert run(["head", "--json", str(base / "few")]) == 0
    [id_] = {sample["cache_id"] for sample in json_lines(capsys.readouterr().out)}
    assert run(["head", "--json", str(base / "few")]) == 0
    assert json_lines(capsys.readouterr().out)[1:] == [
        {
            "path": str(base / "few"),
            "cache_id": id_,
            "sample_id": row,
            "bytes": length,
            "metadata": {"good": row == 2, "label": label, "name": name, "score": score},
        }
        for row, length, label, name, score in ((1, 40, -2, "x" * 100, "nan"), (2, 0, 3, "", "-inf"))
    ]


def test_head_shows_the_samples_around_a_damaged_one(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    break_record(base / "many", 1)
    assert run(["head", "--json", "-n", "3", str(base / "many")]) == 1
    told = capsys.readouterr()
    assert [sample["sample_id"] for sample in json_lines(told.out)] == [0, 2]
    assert told.err.startswith("error: sample 1 of cache ")
    assert run(["head", str(base / "absent")]) == 1


def test_names_that_no_encoding_has_are_shown(base: Path) -> None:
    odd = os.fsdecode(b"odd\xff\xc3\xa9\x1b")
    (base / "few").rename(base / odd)
    process = program("info", str(base / odd), stdout=subprocess.PIPE, encoding="ascii")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.decode().splitlines()[0] == f"{base}/odd\\udcff\\xe9\\x1b"


@pytest.fixture
def unfinished(base: Path) -> Iterator[tuple[Path, Path]]:
    """What a killed writer left, and what one that lives is writing."""
    writer = """
import sys, dataset_rt as drt
from support import Listed
def rows():
    for row in range(100_000):
        yield bytes(1000), {"row": row}
        if row == 2000:
            print("writes", flush=True)
            sys.stdin.read()
drt.DatasetRuntime(num_workers=1).write_cache(Listed("slow", rows()), sys.argv[1])
"""
    writers = []
    found: list[Path] = []
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-c", writer, str(base)], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        [new] = [path for path in (base / "tmp").iterdir() if path not in found]
        found.append(new)
        writers.append(process)
    writers[0].kill()
    writers[0].communicate()
    yield found[0], found[1]
    writers[1].kill()
    writers[1].communicate()


def test_clean_lists_and_removes_what_dead_writers_left(
    base: Path, unfinished: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    dead, living = unfinished
    (base / "tmp" / "foreign").mkdir()
    length = sum(file.stat().st_size for file in dead.rglob("*") if file.is_file())
    listed = {"path": str(dead), "bytes": length, "removed": False}

    assert run(["clean", "--json", str(base)]) == 0
    assert json_lines(capsys.readouterr().out) == [{"base": str(base), "dead": [listed], "living": [str(living)]}]
    assert run(["clean", str(base)]) == 0
    assert capsys.readouterr().out == (
        f"{dead}: {size(length)}\n1 cache being written, which stays\n1 unfinished cache of dead writers; --yes removes it\n"
    )
    assert dead.is_dir()

    assert run(["clean", "--json", "--yes", str(base)]) == 0
    assert json_lines(capsys.readouterr().out) == [
        {"base": str(base), "dead": [listed | {"removed": True}], "living": [str(living)]}
    ]
    assert sorted(path.name for path in (base / "tmp").iterdir()) == sorted([living.name, "foreign"])
    assert run(["clean", "--yes", str(base)]) == 0
    assert capsys.readouterr().out == f"1 cache being written, which stays\n{base}: nothing to remove\n"


def test_clean_needs_a_directory(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (base / "absent", base / "few" / "manifest.json"):
        assert run(["clean", str(path)]) == 1
        assert capsys.readouterr().err == f"error: {path}: expected a directory that holds caches, found none\n"


def test_clean_takes_no_empty_text_for_the_working_directory(
    base: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(base)
    assert run(["clean", "--yes", ""]) == 1
    assert capsys.readouterr() == (
        "",
        "error: BASE must name a file or a directory, found an empty text; '.' is the working directory\n",
    )


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["info"], ["verify"], ["head", "a", "b"], ["head", "-n", "0", "a"], ["clean"]]
)
def test_wrong_arguments_are_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: python -m dataset_rt")


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"dataset_rt {drt.__version__}\n")


def test_a_reader_that_goes_away_ends_the_program_silently(base: Path) -> None:
    for arguments in (["head", "--json", "-n", "3000", str(base / "many")], ["info", *[str(base / "few")] * 500]):
        process = program(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (141, b"")


def test_help_that_nobody_reads_ends_the_program_silently() -> None:
    read, written = os.pipe()
    os.close(read)
    process = program("--help", stdout=written, stderr=subprocess.PIPE)
    os.close(written)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (141, b"")


def test_ctrl_c_ends_the_program_without_a_traceback(base: Path) -> None:
    # Nobody reads on: it waits within a write.
    process = program("info", *[str(base / "few")] * 5000, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(10)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (9_999, "9,999 bytes"),
        (12_345, "12.3 kB (12,345 bytes)"),
        (10**12, "1.0 TB (1,000,000,000,000 bytes)"),
        (10**19, "10000.0 PB (10,000,000,000,000,000,000 bytes)"),
    ],
)
def test_sizes_are_told_exactly(number: int, text: str) -> None:
    assert size(number) == text


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert printable("é\x1b\u202e\x00 ok") == "é\\x1b\\u202e\\x00 ok"
    assert printable(os.fsdecode(b"\xff")) == "\\udcff"
