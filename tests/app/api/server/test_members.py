"""Members and why each has or lacks a role, only for people who run the server."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlmodel import select, update

from models import (
    Breaker,
    Collection,
    Due,
    Event,
    Grant,
    Member,
    MemberChoice,
    Observation,
    Rule,
    Server,
    User,
    now,
    transaction,
)
from services.core.addresses import shorten
from services.core.queue import WAITING
from services.servers import member_list
from tests.app.api.browsers import Browser
from tests.app.api.test_main_path import builders, contract, known, rule, with_server
from tests.app.api.test_main_path import world as world
from tests.support.builders import a_grant, a_member, address


@pytest.fixture
async def ruled(browser: Browser, world: dict[str, Any]) -> dict[str, Any]:
    """ada's server with one rule: three tokens of a collection on Base for the role Holder."""
    await browser.sign_in("ada")
    server_id = await with_server(browser, builders(world))
    await known(world)
    made = await browser.client.post("/api/verification-rules", json=rule(world, server_id) | {"minTokens": 3})
    assert made.status_code == 201, made.text
    async with transaction() as db:
        named = select(Collection).where(Collection.contract == contract(world).lower())
        (await db.exec(named)).one().name = "Mellow Cats"
    return made.json()


async def joined(
    made: dict[str, Any], name: str, *, wallet: str | None = None, amount: int | None = None, role: bool = False
) -> str:
    """Store a member with what is known about them, and return their Discord id."""
    async with transaction() as db:
        server = await db.get_one(Server, made["serverId"])
        member = await a_member(db, server, roles=(made["roleId"],) if role else (), wallet=wallet)
        member.name = name
        db.add(member)
        if amount is not None:
            db.add(
                Observation(
                    chain="base", contract=made["contractAddress"], address=wallet or "", amount=Decimal(amount),
                    block=77, source="Base (node 1)",
                )
            )  # fmt: skip
    return member.discord_id


async def listed(browser: Browser, made: dict[str, Any], **asked: Any) -> dict[str, Any]:
    answer = await browser.client.get(f"/api/servers/{made['serverId']}/members", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def role_of(browser: Browser, made: dict[str, Any], who: str) -> dict[str, Any]:
    answer = await browser.client.get(f"/api/servers/{made['serverId']}/members/{who}/why")
    assert answer.status_code == 200, answer.text
    return next(role for role in answer.json()["roles"] if role["roleId"] == made["roleId"])


async def share(made: dict[str, Any], who: str) -> None:
    async with transaction() as db:
        user = (await db.exec(select(User).where(User.discord_id == who))).one()
        db.add(MemberChoice(server_id=made["serverId"], user_id=user.id or 0, share_wallets=True))


async def test_members_are_found_by_name_or_id_and_wallets_show_only_with_consent(
    browser: Browser, ruled: dict[str, Any]
):
    wallet = address()
    carol = await joined(ruled, "Carol", wallet=wallet, amount=3, role=True)
    erin = await joined(ruled, "erin 100%_x")
    gone = await joined(ruled, "Gone")
    async with transaction() as db:
        await db.exec(update(Member).where(Member.discord_id == gone).values(left_at=now()))  # pyright: ignore[reportArgumentType]
    page = await listed(browser, ruled)
    assert [member["name"] for member in page["members"]] == ["Carol", "erin 100%_x"]
    assert (page["page"], page["pageSize"], page["total"]) == (1, 50, 2)
    first = page["members"][0]
    assert (first["discordId"], first["verified"], first["walletCount"], first["wallets"]) == (carol, True, 1, [])
    assert first["roles"] == [
        {"roleId": ruled["roleId"], "roleName": "Holder", "roleColor": ruled["roleColor"], "held": True,
         "grantedByUs": False},
    ]  # fmt: skip
    await share(ruled, carol)
    assert (await listed(browser, ruled, query="CARO"))["members"][0]["wallets"] == [shorten(wallet)]
    for query, found in [(erin, ["erin 100%_x"]), ("%", ["erin 100%_x"]), ("_", ["erin 100%_x"]), ("nobody", [])]:
        assert [member["name"] for member in (await listed(browser, ruled, query=query))["members"]] == found


async def test_many_members_come_in_pages(browser: Browser, ruled: dict[str, Any]):
    async with transaction() as db:
        db.add_all(Member(server_id=ruled["serverId"], discord_id=str(10**17 + n), name=f"m{n:02}") for n in range(60))
    second = await listed(browser, ruled, page=2)
    assert [member["name"] for member in second["members"]] == [f"m{n:02}" for n in range(50, 60)]
    assert second["total"] == 60
    assert (await listed(browser, ruled, page=3))["members"] == []
    assert (await listed(browser, ruled, page=1000))["members"] == []


@pytest.mark.parametrize("members", [1, 50, 51, 100, 101, 150, 230])
async def test_every_page_goes_on_where_the_one_before_ended(
    browser: Browser, ruled: dict[str, Any], monkeypatch: pytest.MonkeyPatch, members: int
):
    """Pages past the middle do so too, though they are counted from the end; members of one name are sorted by id."""
    monkeypatch.setattr(member_list, "FEW", 100)
    people = [(str(10**17 + n * 7919 % 1000), f"{'Mm'[n % 2]}{n % 40:02}") for n in range(members)]
    async with transaction() as db:
        db.add_all(Member(server_id=ruled["serverId"], discord_id=who, name=name) for who, name in people)
    right = [who for who, _ in sorted(people, key=lambda one: (one[1].lower(), one[0]))]
    for query in ("", "m"):
        found: list[str] = []
        for page in range(1, members // 50 + 3):
            answer = await listed(browser, ruled, page=page, query=query)
            assert answer["total"] == members
            found += [member["discordId"] for member in answer["members"]]
        assert found == right


@pytest.mark.parametrize(
    ("has_wallet", "amount", "outcome", "reason", "then"),
    [
        (True, 3, "yes", None, "Given at the next check"),
        (True, 2, "no", None, "Not given, because no rule says yes."),
        (True, None, "unknown", "not read yet", "Nothing changes until"),
        (False, None, "no", "no wallet on this chain counts here", "Not given, because no rule says yes."),
    ],
)
async def test_why_tells_what_is_needed_what_was_seen_and_what_comes_next(
    browser: Browser, ruled: dict[str, Any], has_wallet: bool, amount: int | None, outcome: str, reason: str | None,
    then: str,
):  # fmt: skip
    wallet = address() if has_wallet else None
    who = await joined(ruled, "Somebody", wallet=wallet, amount=amount)
    role = await role_of(browser, ruled, who)
    assert (role["roleName"], role["held"], role["grantedByUs"]) == ("Holder", False, False)
    assert role["next"].startswith(then)
    (told,) = role["rules"]
    assert (told["id"], told["name"], told["outcome"]) == (ruled["id"], "Builders", outcome)
    (requirement,) = told["requirements"]
    assert requirement["text"] == "At least 3 tokens of Mellow Cats on Base"
    assert (requirement["needed"], requirement["chain"], requirement["outcome"]) == (3, "base", outcome)
    assert requirement["held"] == (amount if has_wallet else 0)
    assert requirement["reason"] == reason
    assert requirement["block"] == (77 if amount is not None else None)
    assert requirement["wallet"] is None
    if wallet:
        await share(ruled, who)
        assert (await role_of(browser, ruled, who))["rules"][0]["requirements"][0]["wallet"] == shorten(wallet)


async def test_an_amount_that_is_the_wallet_itself_is_shown_only_when_the_member_shares(
    browser: Browser, ruled: dict[str, Any]
):
    # A contract of an admin's own may return the address as the balance.
    wallet = address()
    who = await joined(ruled, "Somebody", wallet=wallet, amount=int(wallet, 16))
    (told,) = (await role_of(browser, ruled, who))["rules"][0]["requirements"]
    assert told["outcome"] == "yes"
    assert len(str(told["held"]).rstrip("0")) <= 3
    await share(ruled, who)
    (told,) = (await role_of(browser, ruled, who))["rules"][0]["requirements"]
    assert told["held"] == int(wallet, 16)


async def test_what_comes_next_follows_the_ledger(browser: Browser, ruled: dict[str, Any]):
    who = await joined(ruled, "Holder", wallet=address(), amount=0, role=True)

    async def then() -> str:
        return (await role_of(browser, ruled, who))["next"]

    assert await then() == "Stays as it is, because somebody else gave it."
    async with transaction() as db:
        member = await db.get_one(Member, (ruled["serverId"], who))
        await a_grant(db, member, await db.get_one(Rule, ruled["id"]))
    assert (await role_of(browser, ruled, who))["grantedByUs"] is True
    assert await then() == "Taken at the next check, if a second reading agrees."
    async with transaction() as db:
        db.add(Breaker(server_id=ruled["serverId"], role_id=ruled["roleId"], would_lose=9, holders=10))
    assert await then() == "Stays until an admin approves the removals that were held back."

    async def set_grant(**values: Any) -> None:
        async with transaction() as db:
            await db.exec(update(Grant).values(**values))

    async def set_rule(**values: Any) -> None:
        async with transaction() as db:
            await db.exec(update(Rule).values(**values))

    await set_rule(removal_mode="grace", removal_hours=24)
    await set_grant(no_since=now() - timedelta(hours=1))
    assert (await then()).startswith("Taken on ")
    for state, error, text in [
        ("taking", "Discord: HTTP 500", "Being taken now. The last try failed: Discord: HTTP 500"),
        ("lost", None, "There is no role from Holdfast left to take."),
    ]:
        await set_grant(state=state, last_error=error)
        assert await then() == text
    await set_grant(state="held", last_error=None)
    await set_rule(state="paused")
    assert await then() == "Nothing changes while its rules are paused."
    await set_rule(state="active")
    async with transaction() as db:
        await db.exec(update(Observation).values(amount=3))
    assert await then() == "Stays while a rule says yes."
    await set_grant(state="giving")
    assert await then() == "Being given now."
    async with transaction() as db:
        await db.exec(update(Member).values(pending=True, roles=[]))
    assert await then() == "Given once the server's membership screening is finished."
    await set_grant(state="held")
    assert await then() == "Somebody else took it; it is not given again automatically."


async def test_one_member_is_checked_again(browser: Browser, ruled: dict[str, Any]):
    who = await joined(ruled, "Carol", wallet=address())
    path = f"/api/servers/{ruled['serverId']}/members"
    assert (await browser.client.post(f"{path}/{who}/recheck")).status_code == 202
    assert (await browser.client.post(f"{path}/1/recheck")).status_code == 404
    (due,) = await rows(Due)
    assert (due.key, due.priority) == (f"{ruled['serverId']}:{who}", WAITING)
    log = (await browser.client.get(f"/api/servers/{ruled['serverId']}/events", params={"kind": "recheck"})).json()
    assert [line["text"] for line in log] == ["Ada had Carol checked again."]


async def test_all_members_are_checked_again(browser: Browser, ruled: dict[str, Any]):
    people = [await joined(ruled, name, wallet=address()) for name in ("Carol", "Dave")]
    server = f"/api/servers/{ruled['serverId']}"
    answer = await browser.client.post(f"{server}/recheck")
    assert (answer.status_code, answer.json()["message"]) == (202, "All members are being checked again.")
    assert {due.key for due in await rows(Due)} >= {f"{ruled['serverId']}:{who}" for who in people}
    assert (await browser.client.get(f"{server}/breaker")).json() == []


async def test_two_who_ask_at_the_same_moment_have_everybody_queued_once(browser: Browser, ruled: dict[str, Any]):
    path = f"/api/servers/{ruled['serverId']}/recheck"
    async with transaction() as db:
        # As another request holds it that has not ended yet.
        assert await db.try_lock(f"recheck:{ruled['serverId']}")
        assert (await browser.client.post(path)).status_code == 202
        assert await asked_for() == 0
    assert (await browser.client.post(path)).status_code == 202
    assert await asked_for() == 1


async def asked_for() -> int:
    """Return how often everybody was queued."""
    async with transaction() as db:
        return len((await db.exec(select(Event).where(Event.kind == "recheck.asked"))).all())


async def test_the_charts_numbers_come_by_a_call_too(browser: Browser, ruled: dict[str, Any]):
    asked = {"days": 7, "serverId": ruled["serverId"]}
    told = (await browser.client.get("/api/analytics/history", params=asked)).json()
    assert [len(told[name]) for name in ("days", "proofs", "rolesGiven", "rolesTaken")] == [7, 7, 7, 7]
    assert [(rule["id"], len(rule["holders"])) for rule in told["rules"]] == [(ruled["id"], 7)]
    assert (await browser.client.get("/api/analytics/history", params={"days": 8})).status_code == 400


async def rows(table: type[Due]) -> Sequence[Due]:
    async with transaction() as db:
        return (await db.exec(select(table))).all()


async def test_nobody_else_sees_members(browser: Browser, new_browser: Callable[[], Browser], ruled: dict[str, Any]):
    who = await joined(ruled, "Carol")
    path = f"/api/servers/{ruled['serverId']}/members"
    assert (await browser.client.get(f"{path}/{who}/why")).status_code == 200
    assert (await browser.client.get(f"{path}/1/why")).status_code == 404
    mallory = new_browser()
    assert (await mallory.client.get(path)).status_code == 401
    await mallory.sign_in("mallory")
    for asked in (path, f"{path}/{who}/why", f"{path}/1/why"):
        assert (await mallory.client.get(asked)).status_code == 404
    assert (await mallory.client.post(f"{path}/{who}/recheck")).status_code == 404
