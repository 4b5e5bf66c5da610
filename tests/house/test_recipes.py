"""The recipes of the contributing page: each diff, exactly as written there, works in a copy of the product."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from tests.house.pages import DOCS, ROOT

COPIED = (
    "bot",
    "components",
    "gateways",
    "locales",
    "models",
    "services",
    "state",
    "setting_checks.py",
    "settings.py",
    "sandbox/__init__.py",
    "sandbox/base",
    "sandbox/product.env",
    "pyproject.toml",
    "docs/settings.md",
)
# Loading the product takes longer than a check, so it is done once: each check runs in a fork of a process that has the
# copy loaded.
LOADED = """
import json, os, settings, sys, traceback
import bot.client, components.pages.rule_form.condition_fields, components.pages.server.members
import services.triggers.gateway_events, state.rule_form.condition_draft, state.server.activity, state.server.members
for line in sys.stdin:
    check, database = json.loads(line)
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.environ["DATABASE_URL"] = database
    settings.settings.cache_clear()
    written = os.open("written", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(written, 1)
    os.dup2(written, 2)
    code = 1
    try:
        exec(check, {"__name__": "__main__"})
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
"""
COMMAND = """
import asyncio
from bot.client import build
from bot.interaction.answering import InteractionContext
from types import SimpleNamespace

async def asked():
    bot = build()
    try:
        context = InteractionContext(SimpleNamespace(client=bot, application_id=1), "1", "2", "carol")
        print([one.name for one in bot.get_all_application_commands() if one.name == "chains"])
        print((await bot.get_cog("ChainCommands")._chains(context)).text)
        print((await bot.get_cog("HelpCommand")._help(context)).text)
    finally:
        await bot.close()

asyncio.run(asked())
"""
EVENT = """
import asyncio
from models import transaction
from services.servers import activity
from services.servers.activity import LogFilter
from services.triggers import gateway_events
from services.triggers.gateway_events import GuildFacts
from state.server.activity import KINDS, MARKS

async def renamed():
    for name in ("Cats", "Dogs"):
        async with transaction() as db:
            await gateway_events.guild_available(db, GuildFacts("123", name, None, "1", "2", (), ()))
    async with transaction() as db:
        server = await gateway_events.server_of(db, "123")
        (kind,) = [found for found, label in KINDS if label == "Bot and server"]
        line, *_ = await activity.lines(db, server.id, LogFilter(kind=kind))
    print(line.text, line.undoable, [icon for marked, icon, _ in MARKS if marked == line.kind])

asyncio.run(renamed())
"""
COLUMN = """
import asyncio
from components.pages.server import members as page
from models import Member, Server, transaction
from services.servers import member_list
from state.server.members import _row

async def listed():
    async with transaction() as db:
        server = Server(discord_id="123", name="Cats")
        db.add(server)
        await db.flush()
        for number, pending in enumerate((True, False)):
            db.add(Member(server_id=server.id, discord_id=str(number), name="carol", pending=pending))
        await db.flush()
        print([_row(one).pending for one in await member_list.after(db, server.id, "", 9)])

asyncio.run(listed())
print("Not screened yet" in str(page._list().render()))
"""

RULE_TYPE = """
from datetime import UTC, datetime
from components.pages.rule_form.condition_fields import condition_fields
from gateways.chains.token_sheet import TokenSheet
from services.holdings.evaluate import Answers, read
from services.rules.draft import RuleDraft, check, expression_of
from services.rules.wording import in_words
from state.rule_form.condition_draft import draft_of

contract, wallet, now = "0x" + "c0" * 20, "0x" + "a1" * 20, datetime(2026, 1, 2, tzinfo=UTC)
ids = ("1-3",)
leaf = expression_of(check(RuleDraft("Three cats", contract, "base", "set", "7", 1, min_tokens=2, token_ids=ids)))
print(in_words(leaf, {("base", contract): "Cats"}))
assert draft_of(leaf, "Cats").leaf == leaf
for held in ({"1": 1, "3": 1}, {"1": 1, "4": 1}):
    sheet = TokenSheet("base", contract, 70, now, 0, "node", {wallet: held}, {})
    print(read(leaf, [("evm", wallet)], Answers(frozenset({wallet}), tokens={(contract, ids): sheet})).answer.value)
print("Set: several of certain tokens" in str(condition_fields().render()))
"""

FIELD = """
from components.pages.rule_form.condition_fields import condition_fields
from services.core.errors import FieldRefused
from services.rules.draft import RuleDraft, check, expression_of
from services.rules.types import own_tables
from services.rules.types.own_tables import OwnTables
from services.rules.wording import in_words
from state.rule_form.condition_draft import draft_of

def draft(wallets):
    return RuleDraft("Three", "", "", "several_wallets", "7", 1, details={"wallets": wallets})

leaf = expression_of(check(draft("3")))
print(in_words(leaf, {}))
assert draft_of(leaf, "").leaf == leaf
mine = [("evm", "0x" + number * 20) for number in ("a1", "b2", "c3")]
for wallets in (mine[:2], mine):
    print(own_tables.answer(leaf.details, wallets, OwnTables()).answer.value)
try:
    expression_of(check(draft("0")))
except FieldRefused as fault:
    print(fault.field)
print("Verified wallets, at least" in str(condition_fields().render()))
"""

CHAIN = """
from pathlib import Path
from gateways.chains.catalogue import evm_chains, form_order
from sandbox.base.chain_table import CHAINS as SIMULATED
from services.rules.draft import RuleDraft, check, expression_of
from services.rules.wording import in_words
from services.wallets.transaction_check import read_reference
from settings import settings
from state.rule_form.chain_options import CHAIN_OPTIONS

print([one.label for one in CHAIN_OPTIONS if one.name == form_order()[-1]], SIMULATED["ninth"].collections[0])
print([url.partition("/rpc")[2] for url in settings().rpc["ninth"]])
contract = "0x" + "c0" * 20
leaf = expression_of(check(RuleDraft("Nines", contract, "ninth", "basic", "7", 1)))
print(in_words(leaf, {("ninth", contract): "Owls"}))
print(read_reference("https://explorer.ninth.example/tx/0x" + "ab" * 32).chain)
page = Path("docs/settings.md").read_text()
names = [kind + chain.upper() for chain in evm_chains() for kind in ("RPC_", "RPC_WS_", "FOLLOW_SECONDS_")]
print([name for name in names if f"| `{name}` |" not in page])
"""


def recipe(title: str, page: str) -> dict[str, list[tuple[str, str]]]:
    """Return, for each file that a section's diffs change, the texts to find in it and their replacements.

    A new file has one text to find, which is empty.
    """
    (section,) = re.findall(rf"^## {title}\n(.+?)(?=^## |\Z)", page, re.M | re.S)
    found = dict[str, list[tuple[str, str]]]()
    for block in re.findall(r"^```diff\n(.+?)^```", section, re.M | re.S):
        for path, text in re.findall(r"^--- \S+\n\+\+\+ b/(\S+)\n(.+?)(?=^--- |\Z)", block, re.M | re.S):
            found.setdefault(path, []).extend(map(sides, re.split(r"^@@\n", text, flags=re.M)[1:]))
    return found


def sides(hunk: str) -> tuple[str, str]:
    """Return a hunk's lines before the change and after it."""
    lines = hunk.splitlines(keepends=True)
    return (
        "".join(line[1:] or "\n" for line in lines if line[:1] != "+"),
        "".join(line[1:] or "\n" for line in lines if line[:1] != "-"),
    )


def follow(changes: Mapping[str, list[tuple[str, str]]], copy: Path) -> None:
    """Apply a recipe. A text that is missing or not unique fails."""
    for path, hunks in changes.items():
        text = (copy / path).read_text() if (copy / path).exists() else ""
        for before, after in hunks:
            assert text.count(before) == 1, f"{path} has these lines {text.count(before)} times:\n{before}"
            text = text.replace(before, after)
        (copy / path).write_text(text)


RECIPES = (
    (
        "Add a command",
        {"bot/commands/chains.py"},
        COMMAND,
        ["['chains']", "Ethereum, ApeChain, Polygon, ", "**/chains**: the chains that rules can ask about"],
    ),
    (
        "Add an event kind",
        {"services/core/event_kinds/__init__.py", "services/triggers/gateway_events.py"},
        EVENT,
        ["The server was called Cats and is called Dogs now. False ['pencil']"],
    ),
    (
        "Add a column to the members table",
        {"services/servers/member_list.py", "state/server/members.py", "components/pages/server/members.py"},
        COLUMN,
        ["[True, False]\nTrue"],
    ),
    (
        "Add a rule type",
        {"services/rules/types/registry.py"},
        RULE_TYPE,
        ["At least 2 of the tokens 1 to 3 of Cats on Base\nyes\nno\nTrue"],
    ),
    (
        "Add a rule type with a field of its own",
        {
            "services/rules/types/several_wallets.py",
            "services/rules/types/registry.py",
            "services/rules/types/own_tables.py",
        },
        FIELD,
        ["At least 3 verified wallets\nno\nyes\nwallets\nTrue"],
    ),
    (
        "Add a chain",
        {"gateways/chains/chains.toml", "sandbox/base/chains.toml", "docs/settings.md"},
        CHAIN,
        [
            "['Ninth Chain'] ('Ninth Owls', 'NOWL', 'ninth-owls')\n['/ninth', '2/ninth']\n",
            "At least 1 token of Owls on Ninth Chain\nninth\n[]\n",
        ],
    ),
)
"""Of each recipe: its title, the files that it changes, a check, and what that shows."""


class Followed:
    """A copy of the product in which every recipe was followed, one after another, and a process that has it loaded."""

    def __init__(self, copy: Path, process: subprocess.Popen[str]) -> None:
        self.copy = copy
        self.process = process

    def run(self, check: str, database: str) -> tuple[int, str]:
        """Run a check with a database, and return the exit code and what was written."""
        print(json.dumps([check, database]), file=self.process.stdin, flush=True)
        return int(cast(Any, self.process.stdout).readline()), (self.copy / "written").read_text()


@pytest.fixture(scope="module")
def page() -> str:
    return (DOCS / "contributing.md").read_text()


@pytest.fixture(scope="module")
def followed(page: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Followed]:
    copy = tmp_path_factory.mktemp("followed")
    for name in COPIED:
        # The compiled modules are copied too, so that the copy starts as fast as the original.
        (copy / name).parent.mkdir(exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy2)(ROOT / name, copy / name)
    for title, *_ in RECIPES:
        follow(recipe(title, page), copy)
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", LOADED], cwd=copy, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        yield Followed(copy, process)


@pytest.mark.parametrize(("title", "paths", "check", "shown"), RECIPES)
def test_a_recipe_works_as_it_is_written(
    title: str, paths: set[str], check: str, shown: list[str], page: str, followed: Followed, database_url: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    changes = recipe(title, page)
    assert changes.keys() == paths
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / path).exists():
            shutil.copy2(ROOT / path, tmp_path / path)
    follow(changes, tmp_path)  # it fits alone, too
    code, written = followed.run(check, database_url)
    assert code == 0, written
    assert [text for text in shown if text not in written] == [], written
    ruff, modules = Path(sys.executable).with_name("ruff"), [path for path in paths if path.endswith(".py")]
    for command in (["check"], ["format", "--check"]) if modules else ():
        tidy = subprocess.run(
            [ruff, *command, *modules], cwd=followed.copy, capture_output=True, text=True, check=False
        )
        assert tidy.returncode == 0, tidy.stdout


def test_a_diff_that_no_longer_fits_is_noticed(tmp_path: Path) -> None:
    page = "## Add a b\n```diff\n--- a/x.py\n+++ b/x.py\n@@\n a\n-b\n+c\n@@\n d\n+e\n```\n## Add a c\n"
    changes = recipe("Add a b", page)
    assert changes == {"x.py": [("a\nb\n", "a\nc\n"), ("d\n", "d\ne\n")]}
    (tmp_path / "x.py").write_text("a\nb\nd\n")
    follow(changes, tmp_path)
    assert (tmp_path / "x.py").read_text() == "a\nc\nd\ne\n"
    with pytest.raises(AssertionError, match="0 times"):
        follow(changes, tmp_path)
