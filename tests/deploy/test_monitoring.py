"""Alert rules and dashboard ask for metrics that the product reports, in the forms that Prometheus and Grafana read."""

import copy
import json
import re
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import promql_parser
import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

import models
from models import Schedule, now, transaction
from services.health import metrics
from services.triggers import sweep
from tests.deploy.files import MONITORING, yaml_of

DASHBOARD = json.loads((MONITORING / "grafana.json").read_text())
RULE_FIELDS = {"alert", "expr", "for", "labels", "annotations"}


@pytest.fixture
async def reported(database_url: str) -> AsyncIterator[set[str]]:
    """The names under which Prometheus knows the product's metrics."""
    await models.use(database_url)
    async with transaction() as db:
        moment = now()
        later = moment + timedelta(days=1)
        db.add(Schedule(name=sweep.SCHEDULE, next_at=later, started_at=moment, finished_at=moment, total=3))
        await db.flush()
        found = await metrics.read(db)
    yield {f"{one.name}_total" if one.kind == "counter" else one.name for one in found}
    await models.use(None)


def alerts() -> list[dict[str, Any]]:
    """Return every alert of the rules' only group."""
    (group,) = yaml_of(MONITORING / "alerts.yaml")["groups"]
    return group["rules"]


def asked(expression: str) -> set[str]:
    """Return the metrics that a Prometheus expression reads; raises ValueError for an invalid expression."""
    found = set[str]()

    def note(part: promql_parser.Expr) -> bool:
        if isinstance(part, promql_parser.VectorSelector):
            found.add(str(part.name))
        return True

    promql_parser.walk(promql_parser.parse(expression.replace("$__rate_interval", "5m")), note)
    return found


def added_up(part: promql_parser.Expr) -> Iterator[str]:
    """Yield the metrics in an expression that are not read with `max` first, as two web processes would count twice."""
    if isinstance(part, promql_parser.VectorSelector):
        yield str(part.name)
    elif isinstance(part, promql_parser.MatrixSelector):
        yield from added_up(part.vector_selector)
    elif isinstance(part, promql_parser.BinaryExpr):
        yield from (*added_up(part.lhs), *added_up(part.rhs))
    elif isinstance(part, promql_parser.AggregateExpr) and str(part.op) != "max":
        yield from added_up(part.expr)
    elif isinstance(part, promql_parser.Call) and part.func.name != "absent":
        yield from (name for one in part.args for name in added_up(one))


def on_the_dashboard() -> list[str]:
    """Return the expressions of all panels."""
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


def lost(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Yield the places at which a document differs from another."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            yield from lost(value, after.get(name), f"{place}.{name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from lost(one, other, f"{place}[{number}]")
    elif before != after:
        yield place


def through_grafana(dashboard: dict[str, Any]) -> Any:
    """Read a dashboard into Grafana's own types, and write it again."""
    register_default_plugins()
    return json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(copy.deepcopy(dashboard))))


async def test_every_metric_that_is_asked_for_is_reported(reported: set[str]) -> None:
    rules, panels = [asked(rule["expr"]) for rule in alerts()], [asked(one) for one in on_the_dashboard()]
    assert set().union(*rules) - reported == set()
    assert set().union(*panels) - reported == set()


def test_every_expression_reads_one_of_several_equal_reports() -> None:
    for expression in [*on_the_dashboard(), *(rule["expr"] for rule in alerts())]:
        assert list(added_up(promql_parser.parse(expression.replace("$__rate_interval", "5m")))) == [], expression
    assert list(added_up(promql_parser.parse("sum(rate(holdfast_x[5m])) + max(holdfast_y)"))) == ["holdfast_x"]


def test_the_alert_rules_have_the_fields_that_prometheus_knows() -> None:
    rules = alerts()
    assert len({rule["alert"] for rule in rules}) == len(rules) > 5
    for rule in rules:
        assert set(rule) == RULE_FIELDS
        assert re.fullmatch(r"\d+[smh]", rule["for"])
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert set(rule["annotations"]) == {"summary", "description"}


def test_grafana_knows_every_field_of_the_dashboard() -> None:
    assert list(lost(DASHBOARD, through_grafana(DASHBOARD))) == []
    wrong = copy.deepcopy(DASHBOARD)
    wrong["panels"][0]["targets"][0]["exprr"] = "up"
    assert list(lost(wrong, through_grafana(wrong))) == [".panels[0].targets[0].exprr"]


def test_no_panels_overlap() -> None:
    taken = dict[tuple[int, int], str]()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        for cell in [(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]:
            assert cell not in taken, f"{panel['title']} is over {taken[cell]}"
            taken[cell] = panel["title"]


@pytest.mark.parametrize("wrong", ["max(holdfast_x", "rate(holdfast_x)", "max by (a holdfast_x)"])
def test_a_wrong_expression_is_noticed(wrong: str) -> None:
    with pytest.raises(ValueError):
        asked(wrong)
