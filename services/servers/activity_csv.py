"""The audit log as a table for a spreadsheet: RFC 4180, UTF-8, and nothing in it that a spreadsheet would run."""

import csv
import io
import re
from collections.abc import Iterable

from services.servers.activity import LogLine

HEAD = (
    "time", "kind", "what happened", "done by", "done by (id)", "member", "member (id)", "role", "role (id)", "rule",
    "rule (id)", "batch",
)  # fmt: skip
_RUNS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""A cell that begins so is a formula to a spreadsheet, to some also in the wide letters of East Asian keyboards; with
an apostrophe before it, it is a text."""
_INNER = re.compile(r'([;|\t\r\n])(?=[ "]{0,20}[=+\-@\uff1d\uff0b\uff0d\uff20])')
"""Where a spreadsheet that separates by `;` (Excel in most of Europe) finds such a cell within one of ours."""


def head() -> str:
    """The first row."""
    return table([HEAD])


def body(lines: Iterable[LogLine]) -> str:
    """The rows of these lines; times are in UTC as ISO 8601 has them."""
    return table(
        (
            line.at.isoformat(timespec="seconds"), line.kind, line.text, line.actor_name or "",
            line.actor or "", line.subject_name or "", line.subject or "", line.role_name or "",
            line.role_id or "", line.rule_name or "", str(line.rule_id or ""), line.batch or "",
        )
        for line in lines
    )  # fmt: skip


def table(rows: Iterable[Iterable[str]]) -> str:
    """These rows, every cell in quotation marks."""
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows([_safe(cell) for cell in row] for row in rows)
    return written.getvalue()


def _safe(cell: str) -> str:
    if cell.startswith(_RUNS):
        return f"'{cell[0]}" + _INNER.sub(r"\1'", cell[1:])
    return _INNER.sub(r"\1'", cell)
