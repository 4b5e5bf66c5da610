"""The house keeps its rules, and each rule can fail."""

import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from sandbox.base.people import PEOPLE
from tests.house import rules
from tests.house.rules import Module

ROOT = Path(__file__).resolve().parents[2]
SECRET_NAMES = re.compile(r"(_ID|_SECRET|_TOKEN|_KEY)$")
SANDBOX_IDS = ["1150000000000000999", "sandbox-secret-x"]
# Continuous integration keeps the judge in the repository's folder; this file and the rules name what they search for.
NAMES_MACHINE_PATHS = {".ci/run", "tests/house/rules.py", "tests/house/test_rules.py"}


@cache
def product() -> tuple[Module, ...]:
    """Return every module of the product."""
    return (
        *modules_of(rules.ROOMS),
        *(Module(f"{n}.py", (ROOT / f"{n}.py").read_text()) for n in ("settings", "rxconfig")),
    )


@cache
def stranger() -> tuple[Module, ...]:
    """Return every module of the sandbox."""
    return tuple(modules_of(["sandbox"]))


def modules_of(rooms: Iterable[str]) -> Iterator[Module]:
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            if "node_modules" not in path.parts:
                yield Module(path.relative_to(ROOT).as_posix(), path.read_text())


@cache
def sandbox_ids() -> frozenset[str]:
    """Return what only the sandbox knows: its people's ids and wallets, and the credentials in its settings file."""
    found = {value for person in PEOPLE for value in (person.id, person.wallets.evm, person.wallets.solana)}
    for line in (ROOT / "sandbox" / "product.env").read_text().splitlines():
        name, _, value = line.partition("=")
        if SECRET_NAMES.search(name):
            found.add(value.strip('"'))
    return frozenset(found)


def broken(rule: Callable[[Module], Iterator[str]], modules: Iterable[Module]) -> str:
    """Return every breach on its own line, so that pytest shows them all; empty if there is none."""
    return "\n".join(breach for module in modules for breach in rule(module))


@pytest.mark.parametrize(
    "rule",
    [rules.imports_against_the_arrows, rules.names_that_say_nothing, rules.too_long, rules.raises_in_a_group_handler],
    ids=lambda r: r.__name__,
)
def test_everybody_keeps(rule: Callable[[Module], Iterator[str]]) -> None:
    assert broken(rule, [*product(), *stranger()]) == ""


@pytest.mark.parametrize(
    "rule",
    [
        rules.libraries_out_of_place,
        rules.sql_out_of_place,
        rules.clocks_of_this_machine,
        rules.removals_past_the_breaker,
    ],
    ids=lambda r: r.__name__,
)
def test_the_product_keeps(rule: Callable[[Module], Iterator[str]]) -> None:
    assert broken(rule, product()) == ""


@pytest.mark.parametrize("rule", [rules.too_long, rules.names_that_say_nothing], ids=lambda r: r.__name__)
def test_tests_and_tools_keep(rule: Callable[[Module], Iterator[str]]) -> None:
    generated = {"clients/python/holdfast_client/calls.py", "clients/python/holdfast_client/shapes.py"}
    modules = modules_of(["tests", "tools", "benchmarks", "clients", "docs"])
    assert broken(rule, [module for module in modules if module.path not in generated]) == ""


def test_the_product_knows_nothing_of_the_sandbox() -> None:
    assert len(sandbox_ids()) > 12
    assert broken(lambda module: rules.sandbox_knowledge(module, sandbox_ids()), product()) == ""


def test_every_handler_says_who_may_call_it() -> None:
    assert "\n".join(rules.unguarded_handlers(product())) == ""


def test_every_handler_in_the_background_goes_through_the_watcher() -> None:
    assert "\n".join(rules.background_without_watcher(product())) == ""


def test_no_table_row_can_reach_the_browser() -> None:
    rows = frozenset(name for module in product() for name in rules.table_rows(module))
    assert rows
    assert "\n".join(rules.rows_in_public_state(product(), rows)) == ""


def test_nothing_names_a_path_of_somebodys_machine() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    found: list[str] = []
    for name in filter(None, listed):
        path = ROOT / name
        if name in NAMES_MACHINE_PATHS or not path.is_file():
            continue
        content = path.read_bytes()
        if b"\0" not in content:
            found.extend(rules.machine_paths(name, content.decode(errors="replace")))
    assert "\n".join(found) == ""


STATE = "import reflex as rx\nclass Base(rx.State):\n    pass\n"


@pytest.mark.parametrize(
    ("rule", "path", "bad"),
    [
        (
            rules.raises_in_a_group_handler,
            "jobs/x.py",
            "try:\n    f()\nexcept* OSError as g:\n    raise g.exceptions[0]",
        ),
        (rules.imports_against_the_arrows, "components/x.py", "from services import rules"),
        (rules.imports_against_the_arrows, "components/x.py", "import models.rule"),
        (rules.imports_against_the_arrows, "state/x.py", "from components.ui import button"),
        (rules.imports_against_the_arrows, "state/x.py", "from models import Rule"),
        (rules.imports_against_the_arrows, "state/x.py", "from models import Rule, transaction"),
        (rules.imports_against_the_arrows, "state/x.py", "import models"),
        (rules.imports_against_the_arrows, "services/x.py", "from state.core.gate import signed_in"),
        (rules.imports_against_the_arrows, "services/x.py", "def f():\n    from bot import client"),
        (rules.imports_against_the_arrows, "services/x.py", "from app.supervisor.web import command"),
        (rules.imports_against_the_arrows, "models/x.py", "from services import rules"),
        (rules.imports_against_the_arrows, "models/x.py", "from gateways import chains"),
        (rules.imports_against_the_arrows, "gateways/x.py", "from models import Rule"),
        (rules.imports_against_the_arrows, "bot/x.py", "from jobs import clock"),
        (rules.imports_against_the_arrows, "jobs/x.py", "from state import rules"),
        (rules.imports_against_the_arrows, "app/x.py", "from sandbox.base.people import PEOPLE"),
        (rules.imports_against_the_arrows, "services/x.py", "from tests.conftest import free_port"),
        (rules.imports_against_the_arrows, "sandbox/x.py", "from settings import settings"),
        (rules.imports_against_the_arrows, "sandbox/x.py", "from services import rules"),
        (rules.libraries_out_of_place, "services/x.py", "import reflex as rx"),
        (rules.libraries_out_of_place, "jobs/x.py", "from nextcord.ext import commands"),
        (rules.libraries_out_of_place, "services/x.py", "import httpx"),
        (rules.libraries_out_of_place, "app/x.py", "from web3 import Web3"),
        (rules.libraries_out_of_place, "state/x.py", "from sqlmodel import select"),
        (rules.libraries_out_of_place, "bot/x.py", "from sqlalchemy import text"),
        (rules.libraries_out_of_place, "settings.py", "import sqlalchemy.ext.asyncio"),
        (rules.sql_out_of_place, "jobs/x.py", "query = 'SELECT id FROM due'"),
        (rules.sql_out_of_place, "bot/x.py", "query = f'UPDATE due SET at = {now} WHERE 1'"),
        (rules.sql_out_of_place, "app/x.py", "async def f(db):\n    await db.execute(query)"),
        (rules.sql_out_of_place, "state/x.py", "async def f(session):\n    await session.exec(query)"),
        (rules.clocks_of_this_machine, "services/x.py", "from datetime import datetime\nat = datetime.now(UTC)"),
        (rules.clocks_of_this_machine, "jobs/x.py", "import time\nat = time.time()"),
        (rules.removals_past_the_breaker, "bot/x.py", "async def f(m, r):\n    await m.remove_roles(r)"),
        (rules.removals_past_the_breaker, "services/x.py", "async def f(d):\n    await d.remove_role('1', '2', '3')"),
        (rules.removals_past_the_breaker, "services/x.py", "row = {'state': 'taking'}"),
        (rules.removals_past_the_breaker, "services/x.py", "update(Grant).values(state='taking')"),
        (rules.removals_past_the_breaker, "services/x.py", "q = \"UPDATE g SET x = 1, state = 'taking' WHERE id = 1\""),
        (rules.names_that_say_nothing, "services/utils.py", ""),
        (rules.names_that_say_nothing, "components/common/x.py", ""),
        (rules.names_that_say_nothing, "bot/_helpers.py", ""),
        (rules.too_long, "services/x.py", "x = 1\n" * (rules.LONGEST + 1)),
        (lambda module: rules.sandbox_knowledge(module, SANDBOX_IDS), "app/x.py", "path = '/control/world'"),
        (lambda module: rules.sandbox_knowledge(module, SANDBOX_IDS), "app/x.py", "url = f'{base}/control'"),
        (lambda module: rules.sandbox_knowledge(module, SANDBOX_IDS), "bot/x.py", "ada = '1150000000000000999'"),
        (lambda module: rules.sandbox_knowledge(module, SANDBOX_IDS), "gateways/x.py", "t = 'Bot sandbox-secret-x'"),
        (lambda module: rules.sandbox_knowledge(module, SANDBOX_IDS), "gateways/x.py", "m = 'evm_mine'"),
        (lambda module: rules.sandbox_knowledge(module, SANDBOX_IDS), "jobs/x.py", "m = 'anvil_setBalance'"),
        (lambda module: rules.sandbox_knowledge(module, SANDBOX_IDS), "jobs/x.py", "m = 'hardhat_reset'"),
        (lambda module: rules.unguarded_handlers([module]), "state/x.py", STATE + "    def load(self): ..."),
        (lambda module: rules.unguarded_handlers([module]), "state/x.py", STATE + "    async def load(self): ..."),
        (
            lambda module: rules.unguarded_handlers([module]),
            "state/x.py",
            STATE + "    @rx.event\n    def load(self): ...",
        ),
        (
            lambda module: rules.unguarded_handlers([module]),
            "state/x.py",
            STATE + "class Child(Base):\n    def load(self): ...",
        ),
        (lambda module: rules.unguarded_handlers([module]), "components/x.py", STATE),
        *(
            (lambda module: rules.background_without_watcher([module]), "state/x.py", STATE + decorator + body)
            for decorator in ("    @background\n", "    @rx.event(background=True)\n")
            for body in (
                "    async def a(self):\n        async with self:\n            self.x = 1",
                "    async def a(self):\n        await asyncio.sleep(1)",
                "    async def a(self):\n        async for _ in Watcher(self, None, 'a').looks():\n            pass\n"
                "        await ask()",
                "    async def a(self):\n        async for _ in others():\n            await ask()",
                "    async def a(self):\n        async for _ in Watcher(self, None, 'a').looks():\n            pass\n"
                "        async with transaction() as db:\n            pass",
            )
        ),
        (
            lambda module: rules.rows_in_public_state([module], frozenset({"Rule"})),
            "state/x.py",
            STATE + "    rules: list[Rule] = []",
        ),
        (
            lambda module: rules.rows_in_public_state([module], frozenset({"Rule"})),
            "state/x.py",
            STATE + "    rule: 'models.Rule | None' = None",
        ),
        (lambda module: rules.machine_paths(module.path, module.source), "x.md", "see /" + "work/main/x"),
        (lambda module: rules.machine_paths(module.path, module.source), "x.md", "cd /home/ada/holdfast"),
        (lambda module: rules.machine_paths(module.path, module.source), "x.md", "read ../shared/spec.md"),
    ],
)
def test_a_breach_is_seen(rule: Callable[[Module], Iterator[str]], path: str, bad: str) -> None:
    assert list(rule(Module(path, bad)))


@pytest.mark.parametrize(
    ("rule", "path", "good"),
    [
        (rules.raises_in_a_group_handler, "jobs/x.py", "try:\n    f()\nexcept* OSError as g:\n    x = g\nraise x"),
        (rules.imports_against_the_arrows, "state/x.py", "from models import transaction\nfrom services import rules"),
        (rules.imports_against_the_arrows, "jobs/x.py", "from gateways import gateways\nfrom settings import settings"),
        (rules.imports_against_the_arrows, "services/x.py", "from . import rules\nfrom models.rule import Rule"),
        (rules.imports_against_the_arrows, "app/x.py", "import bot, jobs\nfrom state.core.gate import public"),
        (rules.libraries_out_of_place, "gateways/x.py", "import httpx, web3"),
        (rules.sql_out_of_place, "jobs/x.py", "text = 'Select a role from the list'"),
        (rules.clocks_of_this_machine, "services/x.py", "import time\nbegan, at = time.monotonic(), now()"),
        (
            rules.removals_past_the_breaker,
            "services/x.py",
            "q = \"UPDATE g SET state = 'held' WHERE state = 'taking'\"\nsame = grant.state == 'taking'",
        ),
        (lambda module: rules.sandbox_knowledge(module, SANDBOX_IDS), "state/x.py", "evm_address = 'evm_address'"),
        (
            lambda module: rules.unguarded_handlers([module]),
            "state/x.py",
            STATE + "    @rx.event\n    @signed_in\n    def a(self): ...\n    @public('a visitor reads it')\n"
            "    def b(self): ...\n    @rx.var\n    def c(self): ...\n    def _d(self): ...",
        ),
        (
            lambda module: rules.background_without_watcher([module]),
            "state/x.py",
            STATE + "    @background\n    @signed_in\n    async def a(self, actor):\n"
            "        async with self:\n            x = 1\n"
            "        async for _ in Watcher(self, actor, 'a').looks():\n            await ask()\n"
            "        async with self:\n            x = 2\n    async def b(self):\n        await ask()",
        ),
        (
            lambda module: rules.rows_in_public_state([module], frozenset({"Rule"})),
            "state/x.py",
            STATE + "    rules: list[RuleView] = []\n    _rule: Rule | None = None",
        ),
        (
            lambda module: rules.machine_paths(module.path, module.source),
            "x.md",
            "https://a.example/" + "work/x and networks/",
        ),
    ],
)
def test_what_is_allowed_is_not_a_breach(rule: Callable[[Module], Iterator[str]], path: str, good: str) -> None:
    assert list(rule(Module(path, good))) == []
