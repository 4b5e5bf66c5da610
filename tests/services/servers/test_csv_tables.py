"""The log as a table: a spreadsheet executes nothing in it."""

import csv
import io
from datetime import UTC, datetime

import pytest

from services.servers import csv_tables
from services.servers.activity import LogLine


def line(name: str) -> LogLine:
    return LogLine(
        id=1, at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), kind="role.given", text=f"{name} got Holder.", actor=None,
        actor_name=None, subject="2", subject_name=name, role_id="9", role_name="Holder", rule_id=None, rule_name=None,
        batch=None, undoable=False, data={}, request_id=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "=cmd|' /C calc'!A0", "\uff1d1+1", "\uff0b1", "\uff0d1",
     "\uff20SUM(A1)"],
)  # fmt: skip
def test_a_cell_that_a_spreadsheet_would_run_is_a_text(name: str) -> None:
    (row,) = csv.reader(io.StringIO(csv_tables.log_rows([line(name)]), newline=""))
    assert row[5] == f"'{name}"
    assert row[2] == f"'{name} got Holder."


@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize(
    "name", ["x;=1+1;y", "x; =1+1", 'x;"=1+1"', "x\t@SUM(A1)", "x|-1", "x\n=1+1", "x;\uff1d1+1", ";=1", "=1;=2"]
)
def test_no_other_separator_makes_a_cell_that_a_spreadsheet_would_run(name: str, separator: str) -> None:
    written = csv_tables.log_rows([line(name)])
    cells = [cell for row in csv.reader(io.StringIO(written), delimiter=separator) for cell in row]
    signs = ("=", "+", "-", "@", "\uff1d")
    assert [cell for cell in cells if cell.lstrip(' "').startswith(signs)] == []


def test_other_cells_are_as_they_are() -> None:
    head, row = csv.reader(
        io.StringIO(
            csv_tables.heading(csv_tables.LOG_COLUMNS) + csv_tables.log_rows([line('Zoë "Cat", 猫\nx')]), newline=""
        )
    )
    cells = dict(zip(head, row, strict=True))
    assert cells["time"] == "2026-01-02T03:04:05+00:00"
    assert (cells["member"], cells["member (id)"], cells["role"]) == ('Zoë "Cat", 猫\nx', "2", "Holder")
    assert csv_tables.heading(csv_tables.LOG_COLUMNS).endswith("\r\n")
