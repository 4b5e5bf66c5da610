"""A migration runs while the previous version still serves: it adds, and removes only what is no longer used.

To drop or rename something, one version stops using it, and a later one drops it in a migration that says
`UNUSED_SINCE = "0012"`, the revision that removed the last use.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

VERSIONS = Path(__file__).resolve().parents[2] / "models" / "migrations" / "versions"
TAKES_AWAY = frozenset({"drop_table", "drop_column", "rename_table", "drop_constraint"})
WORDS = ("DROP TABLE", "DROP COLUMN", "RENAME ", "SET NOT NULL", "ALTER TYPE")


def breaks_the_old_version(source: str) -> Iterator[str]:
    """Yield each step of `upgrade` that would break the previous version."""
    tree = ast.parse(source)
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    upgrade = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "upgrade")
    for call in (node for node in ast.walk(upgrade) if isinstance(node, ast.Call)):
        verb = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if verb in TAKES_AWAY and "UNUSED_SINCE" not in names:
            yield f"{verb} in one step"
        elif verb == "alter_column" and (changed := _keywords(call) & {"new_column_name", "type_", "nullable"}):
            yield f"alter_column of {', '.join(sorted(changed))}"
        elif verb == "add_column" and _refuses_old_rows(call):
            yield "a required column without a server_default"
        elif verb == "execute":
            yield from (word.strip() for word in WORDS if word in ast.unparse(call).upper())


def _keywords(call: ast.Call) -> set[str]:
    return {keyword.arg for keyword in call.keywords if keyword.arg}


def _refuses_old_rows(call: ast.Call) -> bool:
    """Return whether an insert without the new column would fail."""
    column = next((one for one in call.args if isinstance(one, ast.Call)), None)
    if column is None:
        return False
    required = any(one.arg == "nullable" and ast.unparse(one.value) == "False" for one in column.keywords)
    return required and "server_default" not in _keywords(column)


def out_of_line(names: list[str]) -> list[str]:
    """Return the names of migrations that repeat a number or follow a gap."""
    return [name for number, name in enumerate(sorted(names), 1) if not name.startswith(f"{number:04}_")]


def test_migrations_come_one_after_the_other() -> None:
    paths = sorted(VERSIONS.glob("[0-9]*.py"))
    assert out_of_line([path.name for path in paths]) == []
    for number, path in enumerate(paths, 1):
        source = path.read_text()
        assert f'revision = "{number:04}"' in source
        assert number == 1 or f'down_revision = "{number - 1:04}"' in source, path.name


def test_two_migrations_of_one_number_are_seen() -> None:
    assert out_of_line(["0001_a.py", "0002_b.py", "0002_c.py"]) == ["0002_c.py"]


@pytest.mark.parametrize("path", sorted(VERSIONS.glob("*.py")), ids=lambda path: path.stem)
def test_the_version_before_goes_on_serving(path: Path) -> None:
    assert list(breaks_the_old_version(path.read_text())) == []


@pytest.mark.parametrize(
    "bad",
    [
        "op.drop_column('rule', 'name')",
        "op.drop_table('rule')",
        "op.rename_table('rule', 'rules')",
        "op.alter_column('rule', 'name', new_column_name='title')",
        "op.alter_column('rule', 'name', nullable=False)",
        "op.add_column('rule', sa.Column('x', sa.String(), nullable=False))",
        "op.execute('ALTER TABLE rule RENAME COLUMN a TO b')",
        "op.execute(sa.text('alter table rule drop column a'))",
    ],
)
def test_what_would_break_it_is_seen(bad: str) -> None:
    assert list(breaks_the_old_version(f"def upgrade():\n    {bad}\n"))


@pytest.mark.parametrize(
    "good",
    [
        "def upgrade():\n    op.add_column('rule', sa.Column('x', sa.String(), nullable=True))\n",
        "def upgrade():\n    op.add_column('rule', sa.Column('x', sa.String(), server_default='', nullable=False))\n",
        "UNUSED_SINCE = '0012'\ndef upgrade():\n    op.drop_column('rule', 'x')\n",
        "def upgrade():\n    op.create_index('a', 'rule', ['b'])\ndef downgrade():\n    op.drop_table('rule')\n",
    ],
)
def test_what_only_adds_is_fine(good: str) -> None:
    assert list(breaks_the_old_version(good)) == []
