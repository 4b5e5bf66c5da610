"""CSV tables (RFC 4180, UTF-8), such as that of the audit log, without anything that a spreadsheet would run."""

import csv
import io
import re
from collections.abc import Iterable

from locales import NP_, pgettext
from services.servers.activity import LogLine

LOG_COLUMNS = (
    NP_("column", "time"), NP_("column", "kind"), NP_("column", "what happened"), NP_("column", "done by"),
    NP_("column", "done by (id)"), NP_("column", "member"), NP_("column", "member (id)"), NP_("column", "role"),
    NP_("column", "role (id)"), NP_("column", "rule"), NP_("column", "rule (id)"), NP_("column", "batch"),
)  # fmt: skip
"""The names of the audit log's columns; their context in the catalogue is `column`."""
_RUNS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""A cell that begins with one of these is a formula, in some spreadsheets also with the full-width characters of East
Asian keyboards. A leading apostrophe makes it text."""
_INNER = re.compile(r'([;|\t\r\n])(?=[ "]{0,20}[=+\-@\uff1d\uff0b\uff0d\uff20])')
"""Where a spreadsheet that separates by `;` (Excel in most of Europe) would find such a cell inside one of ours."""


def log_rows(lines: Iterable[LogLine]) -> str:
    """Return the rows of these lines of the audit log; times are in UTC and ISO 8601."""
    return table(
        (
            line.at.isoformat(timespec="seconds"), line.kind, line.text, line.actor_name or "",
            line.actor or "", line.subject_name or "", line.subject or "", line.role_name or "",
            line.role_id or "", line.rule_name or "", str(line.rule_id or ""), line.batch or "",
        )
        for line in lines
    )  # fmt: skip


def heading(columns: Iterable[str]) -> str:
    """Return a header row in the reader's language."""
    return table([[pgettext("column", one) for one in columns]])


def table(rows: Iterable[Iterable[str]]) -> str:
    """Return these rows as CSV, every cell in quotation marks."""
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows([_safe(cell) for cell in row] for row in rows)
    return written.getvalue()


def _safe(cell: str) -> str:
    if cell.startswith(_RUNS):
        return f"'{cell[0]}" + _INNER.sub(r"\1'", cell[1:])
    return _INNER.sub(r"\1'", cell)
