"""Runs examples/quickstart.py as a user would, and looks at what it leaves behind."""

from pathlib import Path

from PIL import Image
from support import run_example


def counts(output: str, heading: str) -> dict[int, int]:
    lines = output.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith(heading)]
    words = lines[at + 1].replace(":", "").split()
    return {int(label): int(count) for label, count in zip(words[::2], words[1::2], strict=True)}


def test_quickstart_rebalances_repeats_and_leaves_only_the_picture(tmp_path: Path) -> None:
    output = run_example(tmp_path, "quickstart.py")

    before = counts(output, "classes after filtering")
    after = counts(output, "with weights")
    assert min(before.values()) * 3 < max(before.values())
    assert max(after.values()) < min(after.values()) * 2
    assert sum(before.values()) == sum(after.values())
    assert "same seed, same epoch: True; another seed, same epoch: False" in output

    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["quickstart.png", "tmp"]
    with Image.open(tmp_path / "quickstart.png") as picture:
        darkest, brightest = picture.getextrema()
        assert (darkest, brightest) == (0, 255)


def test_quickstart_keeps_the_caches_where_it_is_told(tmp_path: Path) -> None:
    run_example(tmp_path, "quickstart.py", "--keep", "kept", "--picture", "pictures/digits.png")
    assert sorted(entry.name for entry in (tmp_path / "kept").iterdir() if entry.name != "tmp") == [
        "digits-test",
        "digits-train",
    ]
    assert (tmp_path / "kept" / "digits-train" / "manifest.json").is_file()
    assert (tmp_path / "pictures" / "digits.png").is_file()
    assert not (tmp_path / "quickstart.png").exists()
