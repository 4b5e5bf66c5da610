"""The airdrop list of a server: only the members who chose an address for it."""

import csv
import io
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from models import Event, MemberChoice, Observation, PayoutListing, Wallet, now, transaction
from services.guilds import members
from services.privacy import payouts
from tests.app.api.browsers import Browser
from tests.jobs.town import Town, a_town

HEAD = ["address", "holdings", "block"]


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town that ada owns; carol and dave have a wallet each, with 3 and 0 tokens of its collection at block 900."""
    async with a_town(sandbox_url, "ada", "carol", "dave") as made:
        for who, amount in (("carol", 3), ("dave", 0)):
            await made.prove(who)
            async with transaction() as db:
                db.add(
                    Observation(
                        chain="base", contract=made.contract.lower(), address=made.wallet(who), amount=Decimal(amount),
                        block=900, source="base node 1",
                    )
                )  # fmt: skip
        yield made


@pytest.fixture
async def rule_id(town: Town) -> int:
    town.contract = town.contract.lower()
    return await town.rule("Holder")


async def signed_in(new_browser: Callable[[], Browser], town: Town, who: str) -> Browser:
    browser = new_browser()
    await browser.sign_in(town.people[who]["username"])
    return browser


async def wallet_id(town: Town, who: str) -> int:
    async with transaction() as db:
        return (await db.exec(select(Wallet.id).where(Wallet.address == town.wallet(who)))).one() or 0


async def choose(browser: Browser, town: Town, wallet: int | None) -> Any:
    return await browser.client.put(f"/api/me/servers/{town.server_id}", json={"payoutWalletId": wallet})


async def listed(browser: Browser, town: Town, rule_id: int | None = None) -> list[list[str]]:
    query = {} if rule_id is None else {"ruleId": rule_id}
    answer = await browser.client.get(f"/api/servers/{town.server_id}/payout.csv", params=query)
    assert answer.status_code == 200, answer.text
    head, *rows = csv.reader(io.StringIO(answer.text))
    assert head == HEAD
    return rows


async def test_only_those_who_chose_an_address_are_listed_and_what_is_withdrawn_is_gone(
    new_browser: Callable[[], Browser], town: Town, rule_id: int
) -> None:
    ada, carol, dave = [await signed_in(new_browser, town, who) for who in ("ada", "carol", "dave")]
    assert await listed(ada, town) == []
    chosen = await choose(carol, town, await wallet_id(town, "carol"))
    assert (chosen.status_code, chosen.json()["payoutWalletId"]) == (200, await wallet_id(town, "carol"))
    assert await listed(ada, town) == [[town.wallet("carol"), "3", "900"]]
    assert await listed(ada, town, rule_id) == [[town.wallet("carol"), "3", "900"]]

    await choose(dave, town, await wallet_id(town, "dave"))
    both = await listed(ada, town)
    assert sorted(both) == sorted([[town.wallet("carol"), "3", "900"], [town.wallet("dave"), "0", "900"]])
    assert await listed(ada, town, rule_id) == [[town.wallet("carol"), "3", "900"]], "the rule does not entitle dave"

    kept = await carol.client.put(f"/api/me/servers/{town.server_id}", json={"shareWallets": True})
    assert kept.json()["payoutWalletId"] is not None, "another choice leaves it as it is"
    assert (await choose(carol, town, None)).json()["payoutWalletId"] is None
    assert await listed(ada, town, rule_id) == []


async def test_of_several_conditions_a_list_names_those_of_which_something_is_held(
    new_browser: Callable[[], Browser], town: Town, rule_id: int
) -> None:
    await town.rule("Whale", least=5)
    ada, carol, dave = [await signed_in(new_browser, town, who) for who in ("ada", "carol", "dave")]
    await choose(carol, town, await wallet_id(town, "carol"))
    await choose(dave, town, await wallet_id(town, "dave"))
    held = {address: (holdings, block) for address, holdings, block in await listed(ada, town)}
    assert [each.rpartition(": ")[2] for each in held[town.wallet("carol")][0].split("; ")] == ["3", "3"]
    assert held[town.wallet("dave")] == ("", "base: 900")


async def test_a_list_goes_on_in_pages_which_are_small_where_a_server_has_many_rules(
    new_browser: Callable[[], Browser], town: Town, rule_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[int]()
    page = payouts.page

    async def counted(*arguments: Any) -> list[payouts.Chosen]:
        read.append(arguments[-1])
        return await page(*arguments)

    monkeypatch.setattr(payouts, "page", counted)
    ada, carol, dave = [await signed_in(new_browser, town, who) for who in ("ada", "carol", "dave")]
    await choose(carol, town, await wallet_id(town, "carol"))
    await choose(dave, town, await wallet_id(town, "dave"))
    monkeypatch.setattr(payouts, "LEAST_PAGE", 1)
    monkeypatch.setattr(payouts, "ANSWERS_A_PAGE", 1)
    assert {row[0] for row in await listed(ada, town)} == {town.wallet("carol"), town.wallet("dave")}
    assert read == [1, 1, 1]
    assert await listed(ada, town, rule_id) == [[town.wallet("carol"), "3", "900"]]
    assert read[3:] == [payouts.PAGE], "one rule is one answer for each member"


async def test_each_download_is_in_the_log_and_the_member_sees_who_and_when(
    new_browser: Callable[[], Browser], town: Town, rule_id: int
) -> None:
    ada, carol, dave = [await signed_in(new_browser, town, who) for who in ("ada", "carol", "dave")]
    await choose(carol, town, await wallet_id(town, "carol"))
    await choose(dave, town, await wallet_id(town, "dave"))
    await listed(ada, town, rule_id)
    (mine,) = (await carol.client.get("/api/me/servers")).json()
    assert [one["by"] for one in mine["payoutDownloads"]] == [town.people["ada"]["username"]]
    assert mine["payoutDownloads"][0]["at"]
    (his,) = (await dave.client.get("/api/me/servers")).json()
    assert his["payoutDownloads"] == [], "dave was not on that list"
    async with transaction() as db:
        ours = col(Event.kind).contains("payout")
        lines = (await db.exec(select(Event).where(ours).order_by(col(Event.id)))).all()
    chose, downloaded = "member.chose_payout", "server.payouts_downloaded"
    assert [line.kind for line in lines] == [chose, chose, downloaded]
    assert (lines[-1].actor, lines[-1].rule_id, lines[-1].data) == (town.people["ada"]["id"], rule_id, {"members": 2})
    assert all(town.wallet(who)[2:] not in str(line.data) for line in lines for who in ("carol", "dave"))
    log = (await ada.client.get(f"/api/servers/{town.server_id}/events.csv")).text
    assert "downloaded the list of payout addresses (2 members chose one)" in log


async def test_a_member_is_noted_once_a_day_for_each_admin_who_downloads(
    new_browser: Callable[[], Browser], town: Town, rule_id: int
) -> None:
    ada, carol = [await signed_in(new_browser, town, who) for who in ("ada", "carol")]
    await choose(carol, town, await wallet_id(town, "carol"))

    async def notes() -> int:
        async with transaction() as db:
            return len((await db.exec(select(PayoutListing))).all())

    # Midnight may pass between two downloads, but only once.
    for _ in range(4):
        assert len(await listed(ada, town)) == 1
    assert await notes() <= 2
    async with transaction() as db:
        await db.execute(text("UPDATE payout_listing SET at = at - interval '1 day'"))
    before = await notes()
    assert len(await listed(ada, town)) == 1
    assert await notes() == before + 1, "another day"
    async with transaction() as db:
        await db.execute(text("UPDATE payout_listing SET actor = '7'"))
    assert len(await listed(ada, town)) == 1
    assert await notes() == before + 2, "another admin"


async def test_what_was_not_read_is_said_to_be_unknown(
    new_browser: Callable[[], Browser], town: Town, rule_id: int
) -> None:
    ada, carol = [await signed_in(new_browser, town, who) for who in ("ada", "carol")]
    await choose(carol, town, await wallet_id(town, "carol"))
    async with transaction() as db:
        await db.delete((await db.exec(select(Observation).where(Observation.address == town.wallet("carol")))).one())
    assert await listed(ada, town, rule_id) == [[town.wallet("carol"), "unknown", ""]]


@pytest.mark.parametrize("how", ["removes the wallet", "stops using wallets here", "leaves", "is forgotten"])
async def test_an_address_is_gone_at_once_when_its_owner(
    how: str, new_browser: Callable[[], Browser], town: Town, rule_id: int
) -> None:
    ada, carol = [await signed_in(new_browser, town, who) for who in ("ada", "carol")]
    wallet = await wallet_id(town, "carol")
    await choose(carol, town, wallet)
    assert len(await listed(ada, town)) == 1
    match how:
        case "removes the wallet":
            answer = await carol.client.delete(f"/api/wallet-verifications/{wallet}")
            assert answer.status_code == 200
        case "stops using wallets here":
            await carol.client.put(f"/api/me/servers/{town.server_id}", json={"useWallets": False})
        case "leaves":
            async with transaction() as db:
                await members.left_many(db, [(town.server_id, town.people["carol"]["id"])])
        case _:
            assert (await carol.client.delete("/api/me")).status_code == 200
    assert await listed(ada, town) == []
    async with transaction() as db:
        chosen = (await db.exec(select(MemberChoice.payout_wallet_id))).all()
        notes = (await db.exec(select(PayoutListing))).all()
    assert any(chosen) is (how == "stops using wallets here")
    assert bool(notes) is (how in {"removes the wallet", "stops using wallets here"})


async def test_nobody_chooses_what_is_not_theirs_and_nobody_else_reads_the_list(
    new_browser: Callable[[], Browser], town: Town, rule_id: int
) -> None:
    carol, dave = [await signed_in(new_browser, town, who) for who in ("carol", "dave")]
    wallet = await wallet_id(town, "carol")
    for wrong in (wallet, 0, 2**40):
        assert (await choose(dave, town, wrong)).status_code == 404
    async with transaction() as db:
        row = await db.get_one(Wallet, wallet)
        row.chain = "base"
        db.add(row)
    refused = await choose(carol, town, wallet)
    assert (refused.status_code, "contract on one chain alone" in refused.json()["message"]) == (400, True)
    path = f"/api/servers/{town.server_id}/payout.csv"
    assert (await carol.client.get(path)).status_code == 404
    ada = await signed_in(new_browser, town, "ada")
    for other in (rule_id + 1, 2**40):
        assert (await ada.client.get(path, params={"ruleId": other})).status_code == 404


async def test_an_empty_field_of_an_address_counts_as_left_out(
    new_browser: Callable[[], Browser], town: Town, rule_id: int
) -> None:
    ada = await signed_in(new_browser, town, "ada")
    events = "kind=&ruleId=&since=&until="
    paths = ("members?query=&page=", "payout.csv?ruleId=", f"events?{events}&before=&limit=", f"events.csv?{events}")
    for path in (*(f"servers/{town.server_id}/{one}" for one in paths), "analytics/history?days=&serverId="):
        answer = await ada.client.get(f"/api/{path}")
        assert answer.status_code == 200, f"{path}: {answer.text}"
    role = (await ada.client.get(f"/api/verification-rules/{rule_id}")).json()["roleId"]
    order = {"until": (now() + timedelta(days=9)).isoformat(), "roles": [role]}
    at = f"/api/servers/{town.server_id}/move"
    assert (await ada.client.put(at, json=order)).status_code == 200
    assert (await ada.client.get(f"{at}/members?roleId={role}&standing=&page=")).status_code == 200
