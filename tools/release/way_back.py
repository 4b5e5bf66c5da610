"""Update an older version to the present commit and back, on real data: `python -m tools.release.way_back [COMMIT]`.

It takes some minutes and a network. A clone at COMMIT gets rules, wallets, grants and sessions. Then it is updated to a
version whose migration fails, to one whose web fails, and to the present commit, and its rows are compared after each.
If an update can return to COMMIT, the last step does so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psycopg

from app.postgres.server import Postgres
from setting_checks import libpq_url

ROOT = Path(__file__).resolve().parents[2]
OLDER = "HEAD~60"
COMMIT = ("git", "-c", "user.name=way back", "-c", "user.email=way-back@localhost", "commit")
"""A machine that only runs the product has no name for commits."""
SET_UP = "from tools import prepare as p\nwith p.SetUp():\n    p.product(p.Teller(4, p.LOG))\n"
UPDATE = (
    "import sys\nfrom pathlib import Path\nfrom app.supervisor import update\n"
    "update.ROOT = Path(sys.argv.pop(1))\nsys.exit(update.main())\n"
)
FILL = """
INSERT INTO server (id, discord_id, name, description, bot_invited, created_at)
SELECT n, n::text, 'A', '', true, now() FROM generate_series(1, 20) n;
INSERT INTO "user" (id, discord_id, username, connected, created_at, updated_at)
SELECT n, n::text, 'a', false, now(), now() FROM generate_series(1, 500) n;
INSERT INTO wallet (user_id, family, address, method, evidence, created_at)
SELECT n, 'evm', '0x' || n, 'opensea_bio', '{"n": 1}', now() FROM generate_series(1, 500) n;
INSERT INTO session (id_hash, user_id, user_agent, created_at, seen_at, expires_at)
SELECT decode(md5(n::text), 'hex'), n, 'browser', now(), now(), now() + interval '7 days'
FROM generate_series(1, 500) n;
INSERT INTO rule (server_id, name, role_id, role_name, role_color, expression, verification_type, contract_address,
                  blockchain, min_tokens, token_ids, removal_mode, removal_hours, state, created_by, created_at,
                  updated_at)
SELECT n, 'A', '7', 'B', '#5865F2', '{"n": 1}', 'basic', '0x1', 'base', 1, '{}', 'now', 0, 'active', '1', now(), now()
FROM generate_series(1, 20) n;
INSERT INTO member (server_id, discord_id, name, roles, pending, seen_at)
SELECT n % 20 + 1, n::text, 'a', '{}', false, now() FROM generate_series(1, 500) n;
INSERT INTO "grant" (server_id, discord_id, role_id, rule_ids, state, had_before, evidence, attempts,
                     created_at, updated_at)
SELECT n % 20 + 1, n::text, '7', '{5}', 'held', false, '{"n": 1}', 0, now(), now() FROM generate_series(1, 500) n;
"""
KEPT = ("server", "user", "wallet", "session", "member", "grant", "rule")


def main(arguments: Sequence[str]) -> int:
    """Return 0 if every row was kept at every step."""
    older = arguments[0] if arguments else OLDER
    with tempfile.TemporaryDirectory(prefix="holdfast-way-back-") as directory:
        origin, clone = Path(directory) / "origin", Path(directory) / "clone"
        publish(origin, older)
        _run("git", "clone", "--quiet", str(origin), str(clone))
        _run("git", "checkout", "--quiet", "v0.0.1", cwd=clone)
        _run("python3", "-c", SET_UP, cwd=clone)
        fill(clone)
        before = rows(clone)
        for version, code in (("0.0.3", 1), ("0.0.4", 1), ("0.0.2", 0)):
            if not (update(clone, version) == code and kept(version, before, rows(clone))):
                return 1
        [backup] = sorted((clone / "data" / "backups").iterdir())[-1:]
        if _runs("git", "cat-file", "-e", "v0.0.1:app/supervisor/trial.py", cwd=clone):
            code = update(clone, "0.0.1", "--restore", str(backup))
            return 0 if code == 0 and kept("0.0.1", before, rows(clone)) else 1
        print("COMMIT is older than updates, so there is no way back to it.")
        return 0


def publish(origin: Path, older: str) -> None:
    """Make a repository with the older version, the present one, and two that do not work."""
    _run("git", "clone", "--quiet", str(ROOT), str(origin))
    _run("git", "tag", "v0.0.1", _said("git", "rev-parse", older, cwd=ROOT), cwd=origin)
    _run("git", "tag", "v0.0.2", cwd=origin)
    versions = origin / "models" / "migrations" / "versions"
    newest = sorted(path.stem.partition("_")[0] for path in versions.glob("[0-9]*.py"))[-1]
    broken = (
        f'"""Fail half-way."""\n\nfrom alembic import op\n\nrevision, down_revision = "9999", "{newest}"\n\n\n'
        'def upgrade() -> None:\n    op.execute("DELETE FROM wallet")\n    raise RuntimeError("half-way")\n'
    )
    for tag, path, text in (
        ("v0.0.3", versions / "9999_broken.py", broken),
        ("v0.0.4", origin / "app" / "app.py", 'raise RuntimeError("this web does not start")\n'),
    ):
        _run("git", "checkout", "--quiet", "--detach", "v0.0.2", cwd=origin)
        path.write_text(text)
        _run("git", "add", ".", cwd=origin)
        _run(*COMMIT, "--quiet", "--no-verify", "--message", "all: break it", cwd=origin)
        _run("git", "tag", tag, cwd=origin)


def fill(clone: Path) -> None:
    """Migrate the clone's database as its own version does, and give it rows of every kind."""
    with Postgres(_database(clone)) as postgres:
        environment = {**os.environ, "DATABASE_URL": postgres.url}
        subprocess.run([".venv/bin/python", "-m", "alembic", "upgrade", "head"], cwd=clone, env=environment, check=True)
        with psycopg.connect(libpq_url(postgres.url)) as connection:
            connection.execute(FILL)


def rows(clone: Path) -> dict[str, list[dict[str, object]]]:
    """Return every row that must be kept."""
    with Postgres(_database(clone)) as postgres, psycopg.connect(libpq_url(postgres.url)) as connection:
        return rows_of(connection)


def rows_of(connection: psycopg.Connection) -> dict[str, list[dict[str, object]]]:
    """Return the rows of every table in KEPT."""
    return {
        table: [
            row for (row,) in connection.execute(f'SELECT to_jsonb(t) FROM "{table}" t ORDER BY to_jsonb(t)::text')
        ]
        for table in KEPT
    }  # fmt: skip


def kept(version: str, before: dict[str, list[dict[str, object]]], after: dict[str, list[dict[str, object]]]) -> bool:
    """Print and return whether every row is as before; a newer version may have added columns."""
    found = True
    for table, old in before.items():
        new = [{name: row[name] for name in old[0]} for row in after[table]] if old else after[table]
        same = sorted(map(json.dumps, new)) == sorted(map(json.dumps, old))
        print(
            f"after {version}: {len(new)} of {len(old)} rows in {table}{'' if same else ', NOT THE SAME'}", flush=True
        )
        found = found and same
    return found


def update(clone: Path, *arguments: str) -> int:
    """Update the clone with the present commit's own code; return the exit code."""
    environment = {**os.environ, "DATA_DIR": str(clone / "data")}
    print(f"== update {' '.join(arguments)}", flush=True)
    command = [sys.executable, "-c", UPDATE, str(clone), *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _database(clone: Path) -> Path:
    return clone / "data" / "sandbox" / "db"


def _run(*command: str, cwd: Path = ROOT) -> None:
    subprocess.run(command, cwd=cwd, check=True)


def _runs(*command: str, cwd: Path) -> bool:
    return subprocess.run(command, cwd=cwd, check=False, capture_output=True).returncode == 0


def _said(*command: str, cwd: Path) -> str:
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
