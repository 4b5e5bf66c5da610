"""The health call of a server: what is wrong, how to repair it, and that problems end once they are gone."""

from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any

import pytest
from sqlmodel import col, update

from gateways import gateways
from gateways.marketplaces.quota import Quota, Use
from gateways.transport.provider_reports import ProviderReport
from models import Breaker, Rule, Server, now, transaction
from services.core import queue
from services.health import provider_records
from services.health.provider_records import Recorder
from services.rules import pausing
from services.runtime.marketplace_limit_sharing import exchange
from services.triggers import gateway_events
from tests.app.api.browsers import Browser
from tests.jobs.town import Town, a_town
from tests.services.runtime.test_marketplace_limit_sharing import Key


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A guild that only this test uses, whose owner is ada's twin."""
    async with a_town(sandbox_url, "ada", "carol") as made:
        yield made


@pytest.fixture
async def owner(browser: Browser, town: Town) -> Browser:
    await browser.sign_in(town.people["ada"]["username"])
    return browser


async def health(browser: Browser, town: Town) -> dict[str, Any]:
    answer = await browser.client.get(f"/api/servers/{town.server_id}/health")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def note() -> None:
    """Store what this process's clients noted, as the running processes do."""
    await Recorder().publish()


async def test_a_sound_server_is_good_in_every_line_that_is_its_own(owner: Browser, town: Town) -> None:
    await town.rule("Holder")
    async with transaction() as db:
        await provider_records.keep(db, [provider_records.bot_is(True)])
    await provider_records.probe(gateways(), ["base:0", "base:1"])
    await note()
    view = await health(owner, town)
    assert view["bot"] | {"heardAt": None, "since": None} == {
        "state": "good", "inServer": True, "connected": True, "heardAt": None, "since": None, "mend": None,
        "text": "The bot is in this server and listens.",
    }  # fmt: skip
    assert (view["permissions"]["state"], view["permissions"]["missing"]) == ("good", [])
    assert (view["roleOrder"]["state"], view["roleOrder"]["problems"]) == ("good", [])
    base = {one["provider"]: one for one in view["providers"] if one["chain"] == "base"}
    assert {name: (one["answers"], one["state"], one["used"]) for name, one in base.items()} == {
        "base:0": ("ok", "good", True), "base:1": ("ok", "good", True),
    }  # fmt: skip
    assert base["base:0"]["block"] > 0
    assert base["base:0"]["age"] is not None
    assert [one["name"] for one in view["providers"]][:2] == ["Discord", "OpenSea"]
    assert view["pausedRules"] == view["breakers"] == view["unknown"] == view["lag"] == []
    assert (view["queue"]["failing"], view["alerts"]["state"]) == (0, "off")


async def test_the_reads_that_a_marketplace_still_gives_are_told(owner: Browser, town: Town) -> None:
    quota, key = Quota("OpenSea"), Key()
    key.reads(quota, Use.PROOF, 10)
    await exchange(quota)
    (line,) = (await health(owner, town))["quotas"]
    assert (line["provider"], line["state"], line["reads"], line["left"]) == ("opensea", "good", 600, 590)
    assert line["backAt"] is not None
    assert {one["use"] for one in line["shares"]} == {"proof", "again", "rules", "lookup"}


async def test_a_node_that_is_down_says_that_removals_rest(owner: Browser, town: Town) -> None:
    await town.rule("Holder")
    await town.break_("down", "rpc2:base")
    await provider_records.probe(gateways(), ["base:0", "base:1"])
    await note()
    base = {one["provider"]: one for one in (await health(owner, town))["providers"] if one["chain"] == "base"}
    assert (base["base:0"]["answers"], base["base:1"]["answers"]) == ("ok", "down")
    assert "Removals on Base are paused" in base["base:1"]["text"]
    assert base["base:1"]["since"]
    assert base["base:1"]["mend"]


@pytest.mark.parametrize(
    ("change", "cause", "says"),
    [
        ({"action": "edit_role", "permissions": str(1 << 1)}, "dangerous", "Kick Members"),
        ({"action": "move_role", "position": 90}, "above_bot", "above the bot's own role"),
        ({"action": "delete_role"}, "role_gone", "deleted"),
    ],
)
async def test_a_role_that_cannot_be_given_any_more_pauses_its_rule_with_a_remedy_and_resumes_it_once_repaired(
    owner: Browser, town: Town, change: dict[str, Any], cause: str, says: str
) -> None:
    made = await town.call("guilds", action="add_role", guild=town.name, name="Prize", permissions="0", position=1)
    await town.see()
    rule_id = await town.rule("Prize")
    await town.call("guilds", guild=town.name, role=made["id"], **change)
    await town.see()
    view = await health(owner, town)
    (problem,) = view["roleOrder"]["problems"]
    assert (problem["cause"], view["state"]) == (cause, "bad")
    assert says in problem["text"]
    assert problem["mend"]
    (paused,) = view["pausedRules"]
    assert (paused["id"], paused["cause"], paused["byItself"]) == (rule_id, cause, True)
    assert "automatically" in paused["mend"]
    for told in (problem["text"], paused["reason"]):
        assert (told[-1], told.count(". ")) == (".", 0), "one sentence, without the remedy beside it"
    if cause == "role_gone":
        changes = {"roleId": await town.role("Holder")}
        mended = await owner.client.patch(f"/api/verification-rules/{rule_id}", json=changes)
        assert mended.status_code == 200, mended.text
    else:
        right = {"action": "edit_role", "permissions": "0"}
        below: dict[str, Any] = {"action": "move_role", "position": 1}
        await town.call("guilds", guild=town.name, role=made["id"], **(right if cause == "dangerous" else below))
        await town.see()
    view = await health(owner, town)
    assert view["roleOrder"]["problems"] == view["pausedRules"] == []
    async with transaction() as db:
        assert (await db.get_one(Rule, rule_id)).state == "active"


async def test_a_missing_permission_is_named_with_what_it_is_for(owner: Browser, town: Town) -> None:
    rule_id = await town.rule("Holder")
    bot = next(role for role in (await town.guild())["roles"] if role["managed"])
    rest = int(bot["permissions"]) & ~((1 << 28) | (1 << 4))
    await town.call("guilds", action="edit_role", guild=town.name, role=bot["id"], permissions=str(rest))
    await town.see()
    view = await health(owner, town)
    assert [one["name"] for one in view["permissions"]["missing"]] == ["Manage Roles", "Manage Channels"]
    assert "No role can be given or taken." in view["permissions"]["text"]
    assert view["permissions"]["mend"].startswith("Switch them on for the bot's role")
    assert view["permissions"]["missing"][0]["mend"].startswith("Switch it on for the bot's role")
    assert [(one["id"], one["cause"]) for one in view["pausedRules"]] == [(rule_id, "manage_roles")]
    await town.call("guilds", action="edit_role", guild=town.name, role=bot["id"], permissions=bot["permissions"])
    await town.see()
    view = await health(owner, town)
    assert view["permissions"]["missing"] == view["pausedRules"] == []


async def test_a_kicked_bot_pauses_the_rules_until_it_is_back_and_an_admins_pause_stays(
    owner: Browser, town: Town
) -> None:
    await town.rule("Holder")
    resting = await town.rule("Collector")
    answer = await owner.client.patch(f"/api/verification-rules/{resting}", json={"state": "paused"})
    assert answer.status_code == 200, answer.text
    await town.call("guilds", action="kick_bot", guild=town.name)
    async with transaction() as db:
        await provider_records.keep(db, [provider_records.bot_is(True)])
    async with transaction() as db:
        await gateway_events.left(db, (await town.guild())["id"])
    async with transaction() as db:
        left_at = (await db.get_one(Server, town.server_id)).bot_left_at
    assert left_at is not None
    view = await health(owner, town)
    assert (view["bot"]["inServer"], view["bot"]["state"]) == (False, "bad")
    assert datetime.fromisoformat(view["bot"]["since"]) == left_at, "not when the bot's process connected"
    assert "Invite it" in view["bot"]["mend"]
    assert view["permissions"]["state"] == "off", "there is nothing to say of what an absent bot may do"
    assert [one["cause"] for one in view["pausedRules"]] == ["bot_away", "admin"]
    await town.call("guilds", action="add_bot", guild=town.name)
    await town.see()
    view = await health(owner, town)
    assert view["bot"]["inServer"] is True
    assert [(one["id"], one["cause"], one["byItself"]) for one in view["pausedRules"]] == [(resting, "admin", False)]


async def test_a_breaker_the_queue_and_why_something_is_unknown(owner: Browser, town: Town) -> None:
    await town.rule("Holder")
    who = town.people["carol"]["id"]
    async with transaction() as db:
        db.add(Breaker(server_id=town.server_id, role_id=await town.role("Holder"), would_lose=6, holders=9))
        await queue.mark_member(db, town.server_id, who, queue.CHANGED)
    async with transaction() as db:
        claims = await queue.claim(db, "w", 10)
        await queue.retry_later(db, "w", claims, ["Base: no answer"] * len(claims))
    view = await health(owner, town)
    (stopped,) = view["breakers"]
    assert (stopped["roleName"], stopped["wouldLose"], stopped["holders"]) == ("Holder", 6, 9)
    assert (view["queue"]["failing"], view["queue"]["state"]) == (1, "warning")
    assert [(one["reason"], one["members"]) for one in view["unknown"]] == [("Base: no answer", 1)]


async def test_while_discord_is_down_those_who_ran_the_server_still_read_its_health(
    owner: Browser, new_browser: Callable[[], Browser], town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.rule("Holder")
    mallory = new_browser()
    await mallory.sign_in("mallory")
    async with transaction() as db:
        await pausing.pause_role(db, town.server_id, await town.role("Holder"), "It stands above.", "above_bot")
    await town.break_("down", "discord")
    monkeypatch.setattr(gateways().discord, "_deadline", 0.3)
    await health(owner, town)
    await note()
    view = await health(owner, town)
    discord = next(one for one in view["providers"] if one["provider"] == "discord")
    assert (discord["answers"], discord["state"]) == ("down", "bad")
    assert [one["cause"] for one in view["roleOrder"]["problems"]] == ["above_bot"]
    assert (await mallory.client.get(f"/api/servers/{town.server_id}/health")).status_code == 503


async def test_nobody_else_sees_it(new_browser: Callable[[], Browser], town: Town) -> None:
    mallory = new_browser()
    path = f"/api/servers/{town.server_id}/health"
    assert (await mallory.client.get(path)).status_code == 401
    await mallory.sign_in("mallory")
    for server in (town.server_id, 2**31 - 1, 2**40):
        assert (await mallory.client.get(f"/api/servers/{server}/health")).status_code == 404


async def test_a_bot_that_was_not_heard_for_long_does_not_count_as_connected(owner: Browser, town: Town) -> None:
    assert (await health(owner, town))["bot"]["connected"] is False
    async with transaction() as db:
        refused = ProviderReport(provider_records.BOT, "down", now(), "Turn on Server Members Intent")
        await provider_records.keep(db, [refused])
        await db.exec(update(Server).where(col(Server.id) == town.server_id).values(bot_invited=True))
    assert "Turn on Server Members Intent" in (await health(owner, town))["bot"]["text"]
