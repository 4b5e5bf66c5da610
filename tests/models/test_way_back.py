"""The recovery from a wrong block number, as the operators' guide describes it, matches the tables."""

import re
from pathlib import Path

import psycopg

from setting_checks import libpq_url

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "operating.md"


def test_the_guides_statements_remove_what_is_from_after_the_real_block(database_url: str) -> None:
    [statements] = re.findall(r"A node gave a wrong block number.*?```sql\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    with psycopg.connect(libpq_url(database_url), autocommit=True) as connection:
        for block in (39_999_999, 400_000_000):
            connection.execute(
                "INSERT INTO observation (chain, address, contract, amount, block, source, observed_at) "
                "VALUES ('base', %s, '0x', 1, %s, 'n', now())", [f"0x{block}", block],
            )  # fmt: skip
        connection.execute(statements)
        assert connection.execute("SELECT block FROM observation").fetchall() == [(39_999_999,)]
