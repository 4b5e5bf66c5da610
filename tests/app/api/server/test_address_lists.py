"""Rules on address lists and on any wallet through the API: lists are stored apart, counted, and only for admins."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import select

from app.api.requests.body_limit import LARGEST_LONG_BODY
from models import Grant, transaction
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.privacy import retention
from services.rules.types import stored_address_lists
from services.servers import explain
from settings import settings
from tests.app.api.browsers import Browser
from tests.jobs.town import STRANGER, Town, a_town

RULES = "/api/verification-rules"
SOLANA = "7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV"


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town in which carol and dave have proved a wallet each, and mallory is a member without one."""
    async with a_town(sandbox_url, "ada", "carol", "dave", "mallory") as made:
        for who in ("carol", "dave"):
            await made.prove(who)
        yield made


async def payload(town: Town, *addresses: str, **fields: Any) -> dict[str, Any]:
    return {
        "ruleName": "Friends", "verificationType": "address_list", "addresses": list(addresses),
        "roleId": await town.role("Holder"), "serverId": town.server_id,
    } | fields  # fmt: skip


async def asked(browser: Browser, method: str, path: str, status: int = 200, **sent: Any) -> Any:
    answer = await browser.client.request(method, path, **sent)
    assert answer.status_code == status, answer.text
    return answer.json()


async def counted() -> tuple[int, int]:
    """Return how many lists and listed addresses are stored."""
    async with transaction() as db:
        found = await db.execute(
            text("SELECT (SELECT count(*) FROM address_list), (SELECT count(*) FROM address_list_entry)")
        )
        lists, entries = found.one()
        return int(lists), int(entries)


async def due(town: Town) -> set[str]:
    """Return the members who are due, and clear them."""
    async with transaction() as db:
        rows = await db.execute(text("DELETE FROM due WHERE kind = 'member' RETURNING key"))
        keys = {str(key) for (key,) in rows.all()}
    return {name for name, person in town.people.items() if f"{town.server_id}:{person['id']}" in keys}


async def test_a_list_is_told_back_as_a_count_and_a_download_and_is_nobody_elses(
    browser: Browser, new_browser: Callable[[], Browser], town: Town
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    addresses = sorted([town.wallet("carol"), STRANGER, SOLANA])
    made = await asked(browser, "POST", RULES, 201, json=await payload(town, town.wallet("carol"), STRANGER, SOLANA))
    (listed,) = made["addressLists"]
    assert (made["blockchain"], made["contractAddress"], made["verificationType"]) == ("", "", "address_list")
    assert made["expression"] == {"type": "address_list", "list": listed["list"], "count": 3}
    assert made["summary"] == "A wallet on a list of 3 addresses"
    told = [made, await asked(browser, "GET", f"{RULES}/{made['id']}")]
    told.append(await asked(browser, "GET", RULES, params={"serverId": town.server_id}))
    told.append(await asked(browser, "GET", f"/api/servers/{town.server_id}/events"))
    assert not any(address in str(one) for one in told for address in addresses)

    file = await browser.client.get(listed["download"])
    assert file.text.split("\r\n") == ["address", *addresses, ""]
    export = await asked(browser, "GET", f"/api/servers/{town.server_id}/export")
    assert export["addressLists"] == [{"list": listed["list"], "count": 3, "addresses": addresses}]
    assert len(export["rules"]) == 1
    assert len(export["members"]) > 0

    other = new_browser()
    await other.sign_in(town.people["dave"]["username"])
    assert (await other.client.get(listed["download"])).status_code == 404
    assert (await new_browser().client.get(listed["download"])).status_code == 401
    upload = f"/api/servers/{town.server_id}/address-lists"
    assert (await other.client.post(upload, content=STRANGER)).status_code == 404
    assert (await browser.client.get(f"{upload}/{'0' * 32}")).status_code == 404
    assert await counted() == (1, 3)


async def test_a_list_that_is_deleted_during_its_download_makes_no_shorter_file(
    browser: Browser, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    made = await asked(browser, "POST", RULES, 201, json=await payload(town, town.wallet("carol"), STRANGER, SOLANA))
    read = stored_address_lists.page

    async def read_and_deleted(db: AsyncSession, *of: Any) -> tuple[str, ...]:
        found = await read(db, *of)
        await db.execute(text("DELETE FROM address_list"))
        return found

    monkeypatch.setattr(stored_address_lists, "PAGE", 2)
    monkeypatch.setattr(stored_address_lists, "page", read_and_deleted)
    with pytest.raises(RuntimeError, match="already started"):
        await browser.client.get(made["addressLists"][0]["download"])


async def test_mistakes_and_repetitions_are_refused_by_their_lines(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    for path, sent in (
        (RULES, {"json": await payload(town, STRANGER, "0x12", STRANGER)}),
        (f"/api/servers/{town.server_id}/address-lists", {"content": f"{STRANGER}\n0x12\n{STRANGER}"}),
    ):
        told = await asked(browser, "POST", path, 400, **sent)
        assert told["message"].startswith("Line 2: An address that starts with 0x has 42 characters")
        assert "Line 3: This address is in line 1 already." in told["message"]
        assert [(one["line"], one["text"]) for one in told["mistakes"]] == [(2, "0x12"), (3, STRANGER)]
    for addresses, message in (([], "Add the addresses"), ("0x12", "must be a list"), (None, "Add the addresses")):
        told = await asked(browser, "POST", RULES, 400, json=await payload(town) | {"addresses": addresses})
        assert message in told["message"]
    body = await payload(town, STRANGER) | {"ruleName": ""}
    assert (await asked(browser, "POST", RULES, 400, json=body))["message"] == "Rule name is required"
    unknown = {"type": "address_list", "list": "a" * 32, "count": 3}
    body = {**await payload(town), "expression": unknown}
    assert (await asked(browser, "POST", RULES, 400, json=body))["message"] == stored_address_lists.GONE
    assert await counted() == (0, 0)


async def test_twenty_thousand_addresses_fit_for_who_is_signed_in_and_nothing_larger(
    browser: Browser, new_browser: Callable[[], Browser], town: Town
) -> None:
    most = [f"0x{number:040x}" for number in range(20_001)]
    body = await payload(town, *most[1:])
    assert (await new_browser().client.post(RULES, json=body)).status_code == 413
    await browser.sign_in(town.people["ada"]["username"])
    made = await asked(browser, "POST", RULES, 201, json=body)
    assert made["addressLists"][0]["count"] == 20_000
    file = await browser.client.get(made["addressLists"][0]["download"])
    assert len(file.text.split()) == 20_001
    told = await asked(browser, "POST", RULES, 400, json=body | {"addresses": most})
    assert "at most 20,000" in told["message"]
    upload = f"/api/servers/{town.server_id}/address-lists"
    assert (await browser.client.post(upload, content="0" * (LARGEST_LONG_BODY + 1))).status_code == 413
    assert (await browser.client.post("/api/verify-wallet", content="0" * 70_000)).status_code == 413
    assert (await browser.client.post(upload, content="\n".join(most[1:]))).status_code == 201


@pytest.mark.parametrize("part", [{}, [], {"type": "any_wallet"}, {"not": {"type": "any_wallet"}}, "a"])
async def test_only_its_lists_make_a_rule_long(browser: Browser, town: Town, part: object) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    count = LARGEST_LONG_BODY // 2 // len(f"{json.dumps(part)}, ")
    body = {**await payload(town), "expression": {"any": [part] * count}}
    for path in (RULES, f"{RULES}/preview", f"{RULES}/reach", f"{RULES}/try"):
        answer = await browser.client.post(path, json=body)
        assert (answer.status_code, answer.json()["message"]) == (413, "The request is larger than 64 KiB.")
    small = {**body, "expression": {"any": [part] * 41}}
    assert (await browser.client.post(RULES, json=small)).status_code == 400, "a short one is read, and refused"


async def test_an_uploaded_list_is_used_by_name_and_goes_where_no_rule_uses_it(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    upload = f"/api/servers/{town.server_id}/address-lists"
    stored = await asked(browser, "POST", upload, 201, content=f"wallet,amount\n{town.wallet('carol')},5\n")
    assert stored["count"] == 1
    expression = {"any": [{"type": "address_list", **stored}, {"type": "any_wallet", "family": "solana"}]}
    body = {**await payload(town), "expression": expression}
    made = await asked(browser, "POST", RULES, 201, json=body)
    again = await asked(browser, "POST", RULES, 201, json=body | {"ruleName": "Twice"})
    refused = await asked(
        browser, "POST", RULES, 400, json=body | {"expression": {"type": "address_list", **stored, "count": 9}}
    )
    assert refused["message"] == stored_address_lists.GONE
    await asked(browser, "DELETE", f"{RULES}/{made['id']}")
    assert await counted() == (1, 1), "another rule uses it"
    await asked(browser, "PATCH", f"{RULES}/{again['id']}", json={"expression": {"type": "any_wallet"}})
    assert await counted() == (0, 0)

    for number in range(stored_address_lists.MOST_UNUSED + 2):
        await asked(browser, "POST", upload, 201, content=f"0x{number:040x}")
    assert await counted() == (stored_address_lists.MOST_UNUSED,) * 2
    async with transaction() as db:
        await retention.housekeep(db)
    assert await counted() == (stored_address_lists.MOST_UNUSED,) * 2
    async with transaction() as db:
        await db.execute(text("UPDATE address_list SET used_at = now() - interval '25 hours'"))
    async with transaction() as db:
        await retention.housekeep(db)
    assert await counted() == (0, 0)


async def test_what_was_deleted_with_its_list_does_not_come_back_without_it(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    made = await asked(browser, "POST", RULES, 201, json=await payload(town, STRANGER))
    await asked(browser, "PATCH", f"{RULES}/{made['id']}", json={"addresses": [SOLANA]})
    await asked(browser, "DELETE", f"{RULES}/{made['id']}")
    events = await asked(browser, "GET", f"/api/servers/{town.server_id}/events")
    for kind in ("rule.deleted", "rule.changed"):
        batch = next(event["batch"] for event in events if event["kind"] == kind)
        told = await asked(browser, "POST", f"/api/servers/{town.server_id}/events/{batch}/undo", 409)
        assert "deleted" in told["message"]


async def test_only_those_whose_wallets_a_change_of_the_list_concerns_are_decided_again(
    browser: Browser, town: Town
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    carol, dave = town.wallet("carol"), town.wallet("dave")
    made = await asked(browser, "POST", RULES, 201, json=await payload(town, carol, STRANGER))
    assert await due(town) == {"carol", "dave"}
    for addresses, concerned in (
        ([carol, STRANGER, SOLANA], set[str]()),
        ([dave, STRANGER], {"carol", "dave"}),
        ([dave, carol, STRANGER], {"carol"}),
        ([dave], {"carol"}),
    ):
        await asked(browser, "PATCH", f"{RULES}/{made['id']}", json={"addresses": addresses})
        assert await due(town) == concerned, addresses
    await asked(browser, "PATCH", f"{RULES}/{made['id']}", json={"addresses": [carol], "delegated": True})
    assert await due(town) == {"carol", "dave"}
    assert await counted() == (1, 1)


async def test_preview_and_trial_read_lists_that_are_not_stored_and_name_nobody_by_few_addresses(
    browser: Browser, town: Town
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    body = await payload(town, town.wallet("carol"), STRANGER)
    found = await asked(browser, "POST", f"{RULES}/preview", json=body)
    assert (found["gain"], found["unknown"], found["members"]) == (1, 0, [])
    found = await asked(browser, "POST", f"{RULES}/preview", json=body | {"verificationType": "any_wallet"})
    assert found["gain"] == 2
    assert {one["name"] for one in found["members"]} == {town.people[who]["username"] for who in ("carol", "dave")}
    for address, outcome in (
        (town.wallet("carol"), "yes"),
        (town.wallet("dave"), "no"),
        (STRANGER.upper().replace("X", "x"), "yes"),
    ):
        tried = await asked(browser, "POST", f"{RULES}/try", json=body | {"address": address})
        assert tried["outcome"] == outcome
    solana = {**body, "verificationType": "any_wallet", "family": "solana"}
    for address, outcome in ((SOLANA, "yes"), (STRANGER, "no")):
        assert (await asked(browser, "POST", f"{RULES}/try", json=solana | {"address": address}))["outcome"] == outcome
    refused = await asked(
        browser,
        "POST",
        f"{RULES}/preview",
        400,
        json={**body, "expression": {"type": "address_list", "list": "a" * 32, "count": 1}},
    )
    assert refused["message"] == stored_address_lists.GONE
    assert await counted() == (0, 0)


async def test_a_member_learns_yes_or_no_about_their_own_wallets_alone(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    await asked(browser, "POST", RULES, 201, json=await payload(town, town.wallet("carol"), STRANGER))
    for who, outcome, wallet in (("carol", "yes", True), ("dave", "no", False), ("mallory", "no", False)):
        person = town.people[who]
        async with transaction() as db:
            told = await explain.own(db, Actor(0, person["id"], person["username"]), town.server_id)
        ((one,),) = ((role.rules[0].requirements) for role in told.roles)
        assert (one.outcome, one.wallet is not None, one.source) == (outcome, wallet, "list")
        assert one.text == "A wallet on a list of 2 addresses"
        assert STRANGER[2:8] not in str(told)
        why = await asked(browser, "GET", f"/api/servers/{town.server_id}/members/{person['id']}/why")
        assert (why["roles"][0]["rules"][0]["outcome"], why["roles"][0]["rules"][0]["requirements"][0]["wallet"]) == (
            outcome,
            None,
        )


async def test_a_servers_lists_are_limited_and_go_with_it(
    browser: Browser, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    monkeypatch.setenv("ADDRESSES_PER_SERVER", "3")
    monkeypatch.setenv("CONDITIONS_PER_SERVER", "3")
    settings.cache_clear()
    await asked(browser, "POST", RULES, 201, json=await payload(town, STRANGER, SOLANA))
    more = await payload(town, town.wallet("carol"), town.wallet("dave"))
    told = await asked(browser, "POST", RULES, 409, json=more)
    assert "4 addresses" in told["message"]
    two = {"all": [{"type": "any_wallet"}, {"type": "any_wallet", "family": "evm"}]}
    await asked(browser, "POST", RULES, 201, json={**await payload(town), "expression": two})
    told = await asked(browser, "POST", RULES, 409, json=await payload(town, verificationType="any_wallet"))
    assert "4 conditions" in told["message"], "conditions without a chain are counted"
    assert await counted() == (1, 2)
    async with transaction() as db:
        await db.execute(text("DELETE FROM server WHERE id = :server"), {"server": town.server_id})
    assert await counted() == (0, 0)


async def test_a_removal_that_an_edited_list_does_not_concern_goes_on(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    made = await asked(browser, "POST", RULES, 201, json=await payload(town, STRANGER))
    ids = {who: town.people[who]["id"] for who in ("carol", "dave")}
    async with transaction() as db:
        for who in ids.values():
            db.add(Grant(server_id=town.server_id, discord_id=who, role_id=made["roleId"], state="taking"))
    await due(town)
    await asked(browser, "PATCH", f"{RULES}/{made['id']}", json={"addresses": [STRANGER, town.wallet("carol")]})
    async with transaction() as db:
        rows = (await db.exec(select(Grant).where(Grant.server_id == town.server_id))).all()
    assert {row.discord_id: row.state for row in rows} == {ids["carol"]: "held", ids["dave"]: "taking"}
    assert await due(town) == {"carol"}
