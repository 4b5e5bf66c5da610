"""Rights in a server, checked with Discord at that moment: every call about one, by everybody who does not run it."""

import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlmodel import col, select, update

from gateways import gateways
from gateways.discord.own_guilds import OwnGuilds
from models import (
    Access,
    ApiToken,
    ContractMigration,
    Due,
    Event,
    Grant,
    MemberChoice,
    Reach,
    Rule,
    Server,
    ServerMove,
    Truce,
    User,
    Webhook,
    now,
    transaction,
)
from models.rule import AddressListRow
from services.accounts import encryption
from services.accounts.users import ensure
from services.collections.census import reach
from services.core import audit
from services.core.addresses import shorten
from services.rules.expression import parse
from services.rules.types import address_list_text, stored_address_lists
from settings import settings
from tests.app.api.browsers import Browser
from tests.jobs.conftest import Engine
from tests.jobs.conftest import engine as engine
from tests.jobs.town import STRANGER, Town, a_town, until

Names = dict[str, Any]
"""What the calls about a town name: `server_id`, `guild_id`, `rule_id`, `role_id`, `discord_id`, `batch`, `name` (of a
list of addresses), `draft`, `until`, `token_id`, `reach_id`, `migration`, `migration_id`,
`replacement`."""
Call = tuple[str, str, Callable[[Names], Any] | None]
"""`METHOD path` as in our API description, the query, and a maker of the body: JSON, or a text as it is."""

AT = "/api/servers/{server_id}"
RULES = "/api/verification-rules"
CALLS: tuple[Call, ...] = (
    (f"GET {AT}/breaker", "", None),
    (f"GET {AT}/export", "", None),
    (f"GET {AT}/rules.json", "", None),
    (f"GET {AT}/members.csv", "", None),
    (f"GET {AT}/payout.csv", "", None),
    (f"GET {AT}/health", "", None),
    (f"GET {AT}/members", "", None),
    (f"GET {AT}/members/{{discord_id}}/why", "", None),
    (f"GET {AT}/protection", "", None),
    (f"GET {AT}/events", "", None),
    (f"GET {AT}/events.csv", "", None),
    (f"GET {AT}/events/{{batch}}/undo", "", None),
    (f"GET {AT}/address-lists/{{name}}", "", None),
    (f"GET {AT}/move", "", None),
    (f"GET {AT}/move/members", "?roleId={role_id}", None),
    (f"POST {AT}/move/preview", "", None),
    (f"GET {AT}/tokens", "", None),
    (f"GET {AT}/migrations", "", None),
    (f"POST {AT}/migrations/role/preview", "", lambda names: names["replacement"]),
    (f"POST {AT}/migrations/preview", "", lambda names: names["migration"]),
    (f"POST {AT}/migrations/{{migration_id}}/preview", "", None),
    (f"GET {AT}/webhook", "", None),
    ("GET /api/analytics/history", "?serverId={server_id}", None),
    ("GET /api/discord/roles", "?serverId={guild_id}", None),
    (f"GET {RULES}", "?serverId={server_id}", None),
    (f"GET {RULES}/{{rule_id}}", "", None),
    (f"POST {RULES}/preview", "", lambda names: names["draft"]),
    (f"POST {RULES}/try", "", lambda names: {**names["draft"], "address": STRANGER}),
    (f"POST {RULES}/reach", "", lambda names: names["draft"]),
    (f"GET {RULES}/reach/{{reach_id}}", "", None),
    ("POST /api/servers", "", lambda names: {"discordServerId": names["guild_id"], "serverName": "Mine"}),
    (f"POST {AT}/breaker", "", lambda _: {"approve": True}),
    (f"POST {AT}/health/follow-again", "", lambda names: {"roleId": names["role_id"]}),
    (f"POST {AT}/recheck", "", None),
    (f"POST {AT}/members/{{discord_id}}/recheck", "", None),
    (f"PUT {AT}/protection/members/{{discord_id}}", "", lambda _: {"protected": True}),
    (f"PUT {AT}/protection/roles/{{role_id}}", "", lambda _: {"protected": True}),
    (f"POST {AT}/events/{{batch}}/undo", "", None),
    (f"POST {AT}/address-lists", "", lambda _: "0x" + "0b" * 20),
    (f"POST {AT}/move/approve", "", None),
    (f"PUT {AT}/move", "", lambda names: {"until": names["until"], "roles": [names["role_id"]]}),
    (f"DELETE {AT}/move", "", None),
    (f"POST {AT}/migrations/role", "", lambda names: names["replacement"]),
    (f"POST {AT}/migrations", "", lambda names: names["migration"]),
    (f"POST {AT}/migrations/{{migration_id}}/end", "", None),
    (f"POST {AT}/import", "", lambda _: {"source": "collabland", "document": [], "apply": True}),
    (f"POST {RULES}", "", lambda names: names["draft"]),
    (f"POST {AT}/tokens", "", lambda _: {"name": "ci", "scopes": ["read"]}),
    (f"DELETE {AT}/tokens/{{token_id}}", "", None),
    (f"DELETE {AT}/tokens", "", None),
    (f"PUT {AT}/webhook", "", lambda _: {"url": "https://hooks.example.org/", "events": ["role.given"]}),
    (f"POST {AT}/webhook/test", "", None),
    (f"DELETE {AT}/webhook", "", None),
    (f"PATCH {RULES}/{{rule_id}}", "", lambda _: {"state": "paused"}),
    (f"DELETE {RULES}/{{rule_id}}", "", None),
)
"""Every call about a server; a person who runs it can make all of them in this order."""
READS = tuple(call for call in CALLS if call[0].startswith("GET") or call[0].endswith(("/preview", "/try", "/reach")))
REMEMBERED = "GET /api/analytics/history"
"""Counts over the servers that a person runs according to what Discord has told us."""
OTHERS = {
    "GET /api/servers": "one's own",
    f"PUT /api/me{AT.removeprefix('/api')}": "what a member decides about their own wallets",
    "GET /api/discord/invite-url": "a link of any number; Discord asks for the rights when somebody follows it",
}


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town that ada owns; bob administers it by the role Admin, and carol is a member with a proved wallet."""
    async with a_town(sandbox_url, "ada", "bob", "carol") as made:
        await change(made, "bob", "add_role", role="Admin")
        await made.see()
        await made.prove("carol")
        yield made


async def change(town: Town, who: str, action: str, **more: Any) -> None:
    await town.call("members", guild=town.name, user=town.people[who]["id"], action=action, **more)


async def owner_above(browser: Browser, new_browser: Callable[[], Browser], town: Town) -> Browser:
    """The owner's browser; `browser` becomes that of an admin whose highest role is below all others."""
    helper = await town.call(
        "guilds", guild=town.name, action="add_role", name="Helper", permissions="8", position=1
    )  # fmt: skip
    await change(town, "bob", "remove_role", role="Admin")
    await change(town, "bob", "add_role", role=helper["id"])
    owner = new_browser()
    await owner.sign_in(town.people["ada"]["username"])
    await browser.sign_in(town.people["bob"]["username"])
    return owner


def draft(town: Town, role_id: str) -> dict[str, Any]:
    return {
        "ruleName": "Another", "contractAddress": town.contract, "blockchain": "base", "verificationType": "basic",
        "minTokens": 1, "roleId": role_id, "serverId": town.server_id,
    }  # fmt: skip


async def names_of(town: Town) -> Names:
    """Create and return what the calls name: a rule for the role Holder, an undoable change of it, and a list."""
    role_id, rule_id, batch = await town.role("Holder"), await town.rule("Holder"), uuid.uuid4()
    listed = await address_list_text.of_text(f"{STRANGER}\n")
    async with transaction() as db:
        await stored_address_lists.keep(db, town.server_id, [listed])
        rule = await db.get_one(Rule, rule_id)
        after = {"name": rule.name, "expression": rule.expression}
        told = {"before": {**after, "name": "Before"}, "after": after}
        about = {"server_id": town.server_id, "rule_id": rule_id, "role_id": role_id}
        await audit.record(db, audit.line("rule.changed", **about, batch=batch, data=told))
        until = now() + timedelta(hours=1)
        for who in ("ada", "bob"):
            db.add(Truce(server_id=town.server_id, discord_id=town.people[who]["id"], role_id=role_id, until=until))
        ended = now() - timedelta(hours=1)
        db.add(ServerMove(server_id=town.server_id, roles=[role_id], begins_at=ended, begun_at=ended, until=ended))
        ada = await ensure(db, town.people["ada"]["id"], town.people["ada"]["username"])
        token = ApiToken(
            server_id=town.server_id, user_id=ada, name="old", hash=uuid.uuid4().bytes, prefix="hf_", scopes=["read"],
            expires_at=until,
        )  # fmt: skip
        webhook = Webhook(server_id=town.server_id, url="https://hooks.example.org/", secret=encryption.seal("s"))
        db.add_all([token, webhook])
        await db.flush()
        reach_id = await reach.start(db, town.server_id, parse(rule.expression))
        old = {"chain": "base", "contract": town.contract}
        migration = ContractMigration(
            server_id=town.server_id, new_chain="base", new_contract=STRANGER, batch=uuid.uuid4(), **old
        )
        db.add(migration)
        await db.flush()
        migration_id = migration.id
    return {
        "server_id": town.server_id, "guild_id": (await town.guild())["id"], "rule_id": rule_id, "role_id": role_id,
        "discord_id": town.people["carol"]["id"], "batch": batch, "name": listed.digest,
        "draft": draft(town, role_id), "until": until.isoformat(),
        "token_id": token.id, "reach_id": reach_id,
        "migration": {**old, "newContract": STRANGER}, "migration_id": migration_id,
        "replacement": {"oldRole": role_id, "newRole": await town.role("Collector")},
    }  # fmt: skip


async def make(browser: Browser, call: Call, names: Names) -> httpx.Response:
    operation, query, body = call
    method, path = (operation + query).format(**names).split(" ", 1)
    given = None if body is None else body(names)
    if isinstance(given, str):
        return await browser.client.request(method, path, content=given)
    return await browser.client.request(method, path, json=given)


async def rows() -> list[list[dict[str, Any]]]:
    """Return everything that calls about a server can change."""
    async with transaction() as db:
        found = [
            (await db.exec(select(table))).all()
            for table in (
                Server,
                Rule,
                Grant,
                Event,
                Due,
                Access,
                AddressListRow,
                Truce,
                ServerMove,
                ApiToken,
                Reach,
                ContractMigration,
                Webhook,
            )
        ]
        return [[row.model_dump() for row in table] for table in found]


async def refused(browser: Browser, names: Names, calls: Sequence[Call] = CALLS) -> None:
    """Assert that these calls reveal and do nothing, as if there were no such server."""
    before = await rows()
    for call in calls:
        answer = await make(browser, call, names)
        assert answer.status_code == 404, f"{call[0]}: {answer.status_code} {answer.text}"
    assert await rows() == before


def test_every_call_about_a_server_or_a_rule_is_tried_here() -> None:
    from app.api import api

    found = {
        f"{method.upper()} {path}"
        for path, methods in api.openapi()["paths"].items()
        for method, operation in methods.items()
        if path in {"/api/servers", RULES, f"{RULES}/preview", f"{RULES}/try", f"{RULES}/reach"}
        or {"server_id", "serverId", "rule_id", "reach_id"} & {one["name"] for one in operation.get("parameters", [])}
    }
    assert found == {operation for operation, _, _ in CALLS} | set(OTHERS)


async def test_somebody_who_does_not_run_a_server_finds_nothing_there(
    new_browser: Callable[[], Browser], town: Town
) -> None:
    names = await names_of(town)
    elsewhere = Town(town.control)
    await elsewhere.build("olga")
    for who, people in (("carol", town.people), ("olga", elsewhere.people)):
        browser = new_browser()
        await browser.sign_in(people[who]["username"])
        await refused(browser, names)
        assert town.name not in (await browser.client.get("/api/servers")).text
    owner = new_browser()
    await owner.sign_in(town.people["ada"]["username"])
    for call in CALLS:
        answer = await make(owner, call, names)
        assert answer.is_success, f"{call[0]}: {answer.status_code} {answer.text}"


@pytest.mark.parametrize("how", ["role taken", "role without power", "left", "bot away"])
async def test_who_ran_a_server_a_moment_ago_is_refused_at_once_whatever_the_session_remembers(
    browser: Browser, town: Town, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await browser.sign_in(town.people["bob"]["username"])
    names = await names_of(town)
    assert (await browser.client.get(f"{RULES}/{names['rule_id']}")).status_code == 200
    match how:
        case "role taken":
            await change(town, "bob", "remove_role", role="Admin")
        case "role without power":
            await town.call("guilds", guild=town.name, action="edit_role", role="Admin", permissions="0")
        case "left":
            await change(town, "bob", "leave")
        case _:
            await change(town, "bob", "remove_role", role="Admin")
            await town.call("guilds", guild=town.name, action="kick_bot")
            async with transaction() as db:
                await db.exec(update(Server).where(col(Server.id) == town.server_id).values(bot_invited=False))
    async with transaction() as db:
        assert await db.get(Access, (town.server_id, town.people["bob"]["id"])) is not None, "it is remembered"
    # Discord lists somebody's guilds once a second; act as if that second were over.
    monkeypatch.setattr(gateways().oauth, "_own_guilds", OwnGuilds())
    await refused(browser, names, [call for call in CALLS if call[0] != REMEMBERED])


async def test_what_is_remembered_of_who_runs_a_server_goes_when_the_bot_hears_of_it(
    browser: Browser, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await browser.sign_in(town.people["bob"]["username"])
    names = await names_of(town)
    assert town.name in (await browser.client.get("/api/servers")).text
    await change(town, "bob", "remove_role", role="Admin")
    await town.see()
    # Discord lists somebody's guilds once a second; act as if that second were over.
    monkeypatch.setattr(gateways().oauth, "_own_guilds", OwnGuilds())
    await refused(browser, names)
    assert (await browser.client.get("/api/servers")).json() == []
    assert (await browser.client.get("/api/analytics")).json()["connectedServers"] == 0


async def test_nobody_hands_out_by_any_way_what_is_not_below_their_own_highest_role(
    browser: Browser, new_browser: Callable[[], Browser], town: Town
) -> None:
    owner = await owner_above(browser, new_browser, town)
    whale = await town.role("Whale")
    made = (await owner.client.post(RULES, json=draft(town, whale))).json()
    path = f"{RULES}/{made['id']}"
    tries: list[tuple[str, str, Any]] = [
        ("POST", RULES, draft(town, whale)),
        ("PATCH", path, {"minTokens": 2}),
        ("PATCH", path, {"ruleName": "Mine"}),
    ]
    for method, asked, body in tries:
        answer = await browser.client.request(method, asked, json=body)
        assert (answer.status_code, "your own highest role" in answer.text) == (400, True), answer.text
    assert (await browser.client.get(path)).json()["minTokens"] == 1
    # A move also takes the role from those to whom others gave it, as a rule that takes it over does.
    move = f"/api/servers/{town.server_id}/move"
    order = {"until": (now() + timedelta(days=9)).isoformat(), "roles": [whale]}
    answer = await browser.client.put(move, json=order)
    assert (answer.status_code, "your own highest role" in answer.text) == (400, True), answer.text
    assert (await owner.client.put(move, json=order)).status_code == 200
    assert (await browser.client.put(move, json=order)).status_code == 200, (
        "its dates are anybody's who runs the server"
    )
    assert (await owner.client.delete(move)).status_code == 200
    # Pausing a rule gives nobody a role, but resuming it does.
    assert (await browser.client.patch(path, json={"state": "paused"})).status_code == 200
    answer = await browser.client.patch(path, json={"state": "active"})
    assert (answer.status_code, "your own highest role" in answer.text) == (400, True), answer.text
    # Members lose the role if its rule is deleted or gives another role.
    holder = await town.role("Holder")
    replace = f"/api/servers/{town.server_id}/migrations/role"
    for method, asked, body, status in (
        ("DELETE", path, None, 403),
        ("PATCH", path, {"roleId": holder}, 400),
        ("POST", f"{replace}/preview", {"oldRole": whale, "newRole": holder}, 400),
        ("POST", replace, {"oldRole": whale, "newRole": holder}, 400),
    ):
        answer = await browser.client.request(method, asked, json=body)
        assert (answer.status_code, "your own highest role" in answer.text) == (status, True), answer.text
    assert (await owner.client.get(path)).json()["roleId"] == whale
    assert (await owner.client.delete(path)).status_code == 200
    log = (await owner.client.get(f"/api/servers/{town.server_id}/events?kind=rule.deleted")).json()
    undo = f"/api/servers/{town.server_id}/events/{log[0]['batch']}/undo"
    answer = await browser.client.post(undo)
    assert (answer.status_code, "your own highest role" in answer.text) == (409, True), answer.text
    taken = uuid.uuid4()
    async with transaction() as db:
        line = audit.line(
            "role.taken", server_id=town.server_id, subject=town.people["carol"]["id"], role_id=whale,
            batch=taken,
        )  # fmt: skip
        await audit.record(db, line)
    answer = await browser.client.post(f"/api/servers/{town.server_id}/events/{taken}/undo")
    assert (answer.status_code, "your own highest role" in answer.text) == (409, True), answer.text
    assert (await owner.client.post(undo)).status_code == 200
    assert (await owner.client.post(f"/api/servers/{town.server_id}/events/{taken}/undo")).status_code == 200


async def test_nobody_ends_a_migration_by_which_members_lose_a_role_above_their_own(
    browser: Browser, new_browser: Callable[[], Browser], town: Town
) -> None:
    owner = await owner_above(browser, new_browser, town)
    made = await owner.client.post(RULES, json=draft(town, await town.role("Whale")))
    new = await town.call(f"chains/{town.chain}/deploy", standard="ERC721", name="New", slug=uuid.uuid4().hex)
    path = f"/api/servers/{town.server_id}/migrations"
    order = {"chain": town.chain, "contract": town.contract, "newContract": new["contract"], "both": True}
    begun = (await owner.client.post(path, json=order | {"apply": True})).json()
    both = (await owner.client.get(f"{RULES}/{made.json()['id']}")).json()["expression"]
    for last in ("preview", "end"):
        answer = await browser.client.post(f"{path}/{begun['id']}/{last}")
        assert (answer.status_code, "your own highest role" in answer.text) == (403, True), answer.text
    assert (await owner.client.get(f"{RULES}/{made.json()['id']}")).json()["expression"] == both
    for last in ("preview", "end"):
        assert (await owner.client.post(f"{path}/{begun['id']}/{last}")).status_code == 200


async def test_no_call_about_a_server_tells_a_members_address_before_they_say_so(
    browser: Browser, town: Town, engine: Engine, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    settings.cache_clear()
    await browser.sign_in(town.people["ada"]["username"])
    await town.buys("carol")
    names = await names_of(town)
    async with engine():
        await until(lambda: town.has("carol", "Holder"))

    async def told() -> str:
        return "".join([(await make(browser, call, names)).text for call in READS]).lower()

    address = town.wallet("carol")
    found = await told()
    assert town.people["carol"]["username"] in found
    assert address[2:] not in found
    # The four digits alone may also occur in any UUID.
    head, _, tail = shorten(address).lower().rpartition("...")
    assert head not in found
    assert f"...{tail}" not in found
    async with transaction() as db:
        user = (await db.exec(select(User).where(User.discord_id == town.people["carol"]["id"]))).one()
        db.add(MemberChoice(server_id=town.server_id, user_id=user.id or 0, share_wallets=True))
    found = await told()
    assert shorten(address).lower() in found
    assert address[2:] not in found, "never whole"
