"""Chart data: whole coordinates in a field of 1000 by 400, and the sentence that a screen reader speaks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from locales import _, ngettext, sentences, short_day
from services.servers.analytics import HistoryView, RuleHistory

WIDTH, HEIGHT = 1000, 400
MOST_RULES = 12
"""Rules that get a chart of their own, those with the most holders first."""
_BAR_SHARE = 0.7
_MARGIN = 20


@dataclass(frozen=True)
class BarView:
    """One day's bar and its tooltip."""

    x: int
    y: int
    width: int
    height: int
    label: str


@dataclass(frozen=True)
class BarChartView:
    """Bars from the bottom up, or from the middle up and down; `summary` describes them in a sentence."""

    up: list[BarView]
    down: list[BarView]
    peak: int
    total: int
    down_total: int
    summary: str


@dataclass(frozen=True)
class RuleChartView:
    """One rule's holders as a line; `change` is the difference since the first day."""

    id: int
    name: str
    server_name: str
    line: str
    area: str
    holders: list[int]
    now: int
    change: str
    summary: str


@dataclass(frozen=True)
class DayView:
    """One day's row in the table behind the bars."""

    day: str
    proofs: int
    given: int
    taken: int


EMPTY_CHART = BarChartView([], [], 0, 0, 0, "")


def days_of(history: HistoryView) -> list[DayView]:
    """Return the table's rows, newest first."""
    rows = zip(history.days, history.proofs, history.roles_given, history.roles_taken, strict=True)
    return [DayView(short_day(day), proofs, given, taken) for day, proofs, given, taken in reversed(list(rows))]


def proofs_of(history: HistoryView) -> BarChartView:
    """Return the chart of wallets verified per day."""
    peak, total = max(history.proofs), sum(history.proofs)
    up = _bars(history.days, history.proofs, peak, HEIGHT, _("{day}: {count} verified"))
    best = history.days[history.proofs.index(peak)]
    words = ngettext(
        "{count} wallet verified in the last {days} days.", "{count} wallets verified in the last {days} days.", total
    ).format(count=total, days=len(history.days))
    most = _("The most on one day: {peak}, on {day}.").format(peak=peak, day=short_day(best))
    return BarChartView(up, [], peak, total, 0, sentences(words, most) if total else words)


def roles_of(history: HistoryView) -> BarChartView:
    """Return the chart of roles given (up from the middle) and taken (down) per day, on one scale."""
    peak = max(*history.roles_given, *history.roles_taken)
    given, taken = sum(history.roles_given), sum(history.roles_taken)
    up = _bars(history.days, history.roles_given, peak, HEIGHT // 2, _("{day}: {count} given"))
    taken_up = _bars(history.days, history.roles_taken, peak, HEIGHT // 2, _("{day}: {count} taken"))
    down = [replace(one, y=HEIGHT // 2) for one in taken_up]
    words = ngettext(
        "{count} role given and {taken} taken in the last {days} days.",
        "{count} roles given and {taken} taken in the last {days} days.",
        given,
    ).format(count=given, taken=taken, days=len(history.days))
    return BarChartView(up, down, peak, given, taken, words)


def rules_of(history: HistoryView) -> list[RuleChartView]:
    """Return the holders of at most MOST_RULES rules, those with the most holders first."""
    return [_rule(rule, history) for rule in history.rules[:MOST_RULES]]


def _rule(rule: RuleHistory, history: HistoryView) -> RuleChartView:
    peak = max(rule.holders) or 1
    step = WIDTH / (len(rule.holders) - 1)
    points = [
        f"{round(index * step)} {round(HEIGHT - _MARGIN - (HEIGHT - 2 * _MARGIN) * holders / peak)}"
        for index, holders in enumerate(rule.holders)
    ]
    line = f"M{' L'.join(points)}"
    first, last = rule.holders[0], rule.holders[-1]
    change = f"+{last - first}" if last > first else f"−{first - last}" if last < first else "±0"
    return RuleChartView(
        id=rule.id,
        name=rule.name,
        server_name=rule.server_name,
        line=line,
        area=f"{line} L{WIDTH} {HEIGHT} L0 {HEIGHT} Z",
        holders=list(rule.holders),
        now=last,
        change=change,
        summary=ngettext(
            "{rule}: {count} holder now, {first} on {day}.", "{rule}: {count} holders now, {first} on {day}.", last
        ).format(rule=rule.name, count=last, first=first, day=short_day(history.days[0])),
    )


def _bars(days: Sequence[date], values: Sequence[int], peak: int, room: int, label: str) -> list[BarView]:
    """Return bars whose base is at `room` from the top; days without events have none."""
    step = WIDTH / len(days)
    return [
        bar(place, step, round(room * value / peak), label.format(day=short_day(day), count=value), base=room)
        for place, (day, value) in enumerate(zip(days, values, strict=True))
        if value
    ]


def bar(place: int, step: float, height: int, label: str, *, base: int = HEIGHT) -> BarView:
    """Return the bar of the day at this place of a chart with `step` for each day; its lower end is at `base`."""
    left = round((place + (1 - _BAR_SHARE) / 2) * step)
    return BarView(left, base - height, round(step * _BAR_SHARE), height, label)
