"""The audit log as a CSV table (RFC 4180, UTF-8), without anything that a spreadsheet would run."""

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
"""A cell that begins so is a formula, in some spreadsheets also with the full-width characters of East Asian keyboards;
a leading apostrophe makes it text."""
_INNER = re.compile(r'([;|\t\r\n])(?=[ "]{0,20}[=+\-@\uff1d\uff0b\uff0d\uff20])')
"""Where a spreadsheet that separates by `;` (Excel in most of Europe) finds such a cell within one of ours."""


def head() -> str:
    """Return the header row."""
    return table([HEAD])


def body(lines: Iterable[LogLine]) -> str:
    """Return the rows of these lines; times are in UTC and ISO 8601."""
    return table(
        (
            line.at.isoformat(timespec="seconds"), line.kind, line.text, line.actor_name or "",
            line.actor or "", line.subject_name or "", line.subject or "", line.role_name or "",
            line.role_id or "", line.rule_name or "", str(line.rule_id or ""), line.batch or "",
        )
        for line in lines
    )  # fmt: skip


def table(rows: Iterable[Iterable[str]]) -> str:
    """Return these rows as CSV, every cell in quotation marks."""
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows([_safe(cell) for cell in row] for row in rows)
    return written.getvalue()


def _safe(cell: str) -> str:
    if cell.startswith(_RUNS):
        return f"'{cell[0]}" + _INNER.sub(r"\1'", cell[1:])
    return _INNER.sub(r"\1'", cell)
