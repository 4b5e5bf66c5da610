"""The drawings of the dashboard's charts, checked against their numbers."""

from datetime import date, timedelta

from services.servers.analytics import HistoryView, RuleHistory
from state.dashboard.charts import HEIGHT, MOST_RULES, WIDTH, days_of, proofs_of, roles_of, rules_of

DAYS = tuple(date(2026, 11, 14) + timedelta(days=number) for number in range(7))


def history(*, proofs: tuple[int, ...] = (0,) * 7, given: tuple[int, ...] = (0,) * 7, taken: tuple[int, ...] = (0,) * 7,
            holders: tuple[tuple[int, ...], ...] = ()) -> HistoryView:  # fmt: skip
    rules = [RuleHistory(number, f"Rule {number}", "A server", each) for number, each in enumerate(holders, 1)]
    return HistoryView(DAYS, proofs, given, taken, tuple(rules))


def test_bars_are_as_high_as_their_numbers_and_nothing_has_no_bar() -> None:
    chart = proofs_of(history(proofs=(0, 1, 4, 0, 2, 0, 0)))
    assert [bar.height for bar in chart.up] == [HEIGHT // 4, HEIGHT, HEIGHT // 2]
    assert all(bar.y + bar.height == HEIGHT for bar in chart.up)
    assert all(bar.x >= 0 and bar.x + bar.width <= WIDTH for bar in chart.up)
    assert (chart.total, chart.peak) == (7, 4)
    assert chart.up[1].label == "16 Nov: 4 verified"
    assert chart.summary == "7 wallets verified in the last 7 days. The most on one day: 4, on 16 Nov."


def test_given_goes_up_and_taken_down_on_one_scale() -> None:
    chart = roles_of(history(given=(4, 0, 0, 0, 0, 0, 2), taken=(2, 0, 0, 0, 0, 0, 0)))
    assert [(bar.y, bar.height) for bar in chart.up] == [(0, HEIGHT // 2), (HEIGHT // 4, HEIGHT // 4)]
    assert [(bar.y, bar.height) for bar in chart.down] == [(HEIGHT // 2, HEIGHT // 4)]
    assert chart.summary == "6 roles given and 2 taken in the last 7 days."


def test_days_without_anything_are_said_to_be_so() -> None:
    chart = proofs_of(history())
    assert (chart.up, chart.summary) == ([], "0 wallets verified in the last 7 days.")


def test_a_rules_line_ends_where_its_holders_do() -> None:
    up, down, none = rules_of(history(holders=((1, 1, 2, 2, 2, 3, 4), (5, 5, 5, 5, 5, 5, 2), (0,) * 7)))
    assert (up.now, up.change, down.change, none.change) == (4, "+3", "−3", "±0")
    assert up.line.startswith("M0 ")
    assert f"L{WIDTH} " in up.line
    assert up.summary == "Rule 1: 4 holders now, 1 on 14 Nov."
    assert up.holders == [1, 1, 2, 2, 2, 3, 4]


def test_no_more_rules_are_drawn_than_can_be_read() -> None:
    assert len(rules_of(history(holders=((1,) * 7,) * (MOST_RULES + 3)))) == MOST_RULES


def test_the_table_has_the_same_numbers_newest_first() -> None:
    rows = days_of(history(proofs=(1, 2, 3, 4, 5, 6, 7), given=(7, 6, 5, 4, 3, 2, 1)))
    assert [(row.day, row.proofs, row.given) for row in (rows[0], rows[-1])] == [("20 Nov", 7, 1), ("14 Nov", 1, 7)]
