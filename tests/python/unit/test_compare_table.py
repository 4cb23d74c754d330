"""The table of `make compare`: what its ratios and verdicts are made of."""

import pytest
from compare.lines import BEST_PEER, Goal, Line
from compare.table import Row, combined, quantity, summary

PEERS = ("near", "far", "away")


def row(goals: tuple[Goal, ...] = (), unit: str = "s", **values: list[float]) -> Row:
    line = Line("line", "measure", {"A": goals}, ("ours", *PEERS), unit=unit)  # type: ignore[arg-type]
    return Row(line, "A", {name: [{"value": value} for value in rounds] for name, rounds in values.items()})


def test_a_ratio_is_the_median_of_the_ratios_within_the_rounds() -> None:
    # A noisy round hits all of them: the medians alone, 3 and 6, would make 2.
    found = row(ours=[1.0, 3.0, 10.0], near=[1.5, 6.0, 15.0])
    assert found.ratio("near") == 1.5
    assert found.ratio("near", "near") == 1.0
    assert found.ratio("away") is None


def test_only_rounds_of_both_make_a_ratio() -> None:
    assert row(ours=[1.0, 1.0, 1.0], near=[4.0]).ratio("near") == 4.0


def test_noise_is_the_interquartile_range_as_a_part_of_the_median() -> None:
    found = row(ours=[1.0, 2.0, 3.0, 4.0, 100.0], near=[1.0])
    assert found.noise("ours") == pytest.approx(2 / 3)
    assert found.noise("near") is None


def test_the_best_of_some_is_the_one_that_takes_least() -> None:
    found = row(ours=[1.0], near=[2.0, 8.0, 2.0], far=[3.0, 3.0, 3.0])
    assert found.best(PEERS) == "near"
    assert found.best(("away",)) is None


@pytest.mark.parametrize(
    ("goal", "met"),
    [
        (Goal("rate", 0.5, "near"), True),
        (Goal("rate", 0.51, "near"), False),
        (Goal("time", 2.0, "near"), True),
        (Goal("time", 1.9, "near"), False),
        (Goal("value", 4.0), True),
        (Goal("value", 3.9), False),
        (Goal("rate", 0.5, BEST_PEER), True),
        (Goal("rate", 0.51, BEST_PEER), False),
        (Goal("rate", 0.1, "away"), None),
    ],
)
def test_a_goal_is_met_or_missed_or_could_not_be_measured(goal: Goal, met: bool | None) -> None:
    found, shown = row(ours=[4.0], near=[2.0], far=[9.0]).verdict(goal, PEERS)
    assert found is met
    assert goal.of in shown


def test_a_goal_by_processor_time_does_not_look_at_the_clock() -> None:
    found = row(ours=[1.0], near=[9.0])
    found.figures = {"ours": [{"value": 1.0, "cpu": 4.0}], "near": [{"value": 9.0, "cpu": 2.0}]}
    assert found.verdict(Goal("cpu", 0.5, "near"), PEERS)[0] is True
    assert found.verdict(Goal("cpu", 0.51, "near"), PEERS)[0] is False


def test_several_goals_are_met_only_together() -> None:
    assert combined([True, True]) is True
    assert combined([True, None, False]) is False
    assert combined([True, None]) is None


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.5, "s", "1.50 s"),
        (0.0123, "s", "12.3 ms"),
        (1.2e-7, "s", "120 ns"),
        (3 << 20, "B", "3.00 MiB"),
        (17.0, "B", "17.0 B"),
        (0.0, "B", "0.00 B"),
        (None, "B", "-"),
    ],
)
def test_quantities_have_three_digits_and_a_unit(value: float | None, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_who_is_missing_is_told_once_below_the_table() -> None:
    rows = [row(ours=[1.0]), row(ours=[1.0], near=[3.0])]
    for each in rows:
        each.missing["far"] = "cannot be installed"
    text = summary(rows, PEERS)
    assert text.count("far is missing from 'line' on A on: cannot be installed") == 1
    assert text.count("\n| line | A | 1.00 s |") == 2
    assert "near 3.00 s, 3.00" in text
