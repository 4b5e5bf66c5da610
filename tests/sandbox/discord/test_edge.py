"""The edge in front of Discord counts refusals, and blocks an address that has too many."""

from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from sandbox.discord.answers import limits
from tests.sandbox.conftest import BASE, FOUNDER, HOLDER, Outside, role_of


async def invalid(discord: Outside) -> dict[str, Any]:
    return (await discord.http.get("/control/limits")).json()["discord"]["invalid_requests"]


async def bears(discord: Outside, left: int) -> None:
    answer = await discord.http.put("/control/limits", json={"target": "discord", "left": left, "seconds": 600})
    assert answer.status_code == 200, answer.text


async def nobody(discord: Outside) -> httpx.Response:
    """Make a request with a token that Discord does not know."""
    return await discord.rest("GET", "/users/@me", "Bot nobody's")


async def test_ten_thousand_in_ten_minutes_are_borne(discord: Outside) -> None:
    assert await invalid(discord) == {
        "requests": 10_000, "seconds": 600.0, "left": 10_000, "resets_in": 600.0, "shut_for": 0
    }  # fmt: skip


async def test_refusals_of_each_kind_count_and_then_nothing_is_answered(discord: Outside) -> None:
    await bears(discord, 3)
    assert (await nobody(discord)).status_code == 401
    founder = role_of(BASE, FOUNDER)
    mallory = (await discord.member(BASE, "mallory"))["user_id"]
    assert (await discord.bot("PUT", f"/guilds/{BASE}/members/{mallory}/roles/{founder}")).status_code == 403
    await discord.control("faults", target="discord", kind="429", seconds=60)
    assert (await discord.bot("GET", "/users/@me")).status_code == 429
    await discord.http.delete("/control/faults")
    shut = await discord.http.get(
        "/discord/api/v10/users/@me", headers={"Authorization": f"Bot {discord.settings['DISCORD_BOT_TOKEN']}"}
    )
    assert (shut.status_code, shut.text, "via" in shut.headers) == (429, "error code: 1015", False)
    assert 0 < int(shut.headers["retry-after"]) <= 600
    assert (await discord.http.get("/console")).status_code == 200, "people's pages are not behind it"
    await discord.http.delete("/control/limits")
    assert (await discord.bot("GET", "/users/@me")).status_code == 200


async def test_what_succeeds_what_is_not_there_and_what_others_used_up_does_not_count(discord: Outside) -> None:
    await bears(discord, 1)
    assert (await discord.bot("GET", "/users/@me")).status_code == 200
    assert (await discord.bot("GET", f"/guilds/{BASE}/members/1")).status_code == 404
    shared = {"X-RateLimit-Scope": "shared", "Retry-After": "1"}
    await discord.control(
        "faults", target="discord", kind="answer", path="/users/@me", status=429, headers=shared, body={}, times=1
    )
    assert (await discord.bot("GET", "/users/@me")).status_code == 429
    assert (await discord.bot("GET", "/users/@me")).status_code == 200
    assert (await invalid(discord))["left"] == 1


async def test_deleting_the_limits_starts_discords_own_windows_again_and_keeps_the_redirects(discord: Outside) -> None:
    await discord.control("application", redirect_uris=["http://localhost:3000/elsewhere"])
    mallory = (await discord.member(BASE, "mallory"))["user_id"]
    path = f"/guilds/{BASE}/members/{mallory}/roles/{role_of(BASE, HOLDER)}"
    answers = [await discord.bot("PUT" if n % 2 else "DELETE", path) for n in range(11)]
    assert answers[-1].status_code == 429
    told = (await discord.http.delete("/control/limits")).json()
    assert told["discord"]["redirect_uris"] == ["http://localhost:3000/elsewhere"]
    assert (await discord.bot("PUT", path)).status_code == 204


def test_windows_that_have_ended_are_not_remembered_for_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(limits, "time", SimpleNamespace(monotonic=lambda: now, time=lambda: now))
    counts = limits.Limits()
    for interaction in range(limits.FEW):
        assert counts.take("", limits.WEBHOOKS, str(interaction)).allowed
    for guild in range(limits.FEW):
        assert counts.take("bot", limits.NEW_ROLES, str(guild)).allowed
    now += limits.WEBHOOKS.seconds
    for interaction in range(limits.FEW):
        assert counts.take("", limits.WEBHOOKS, f"later {interaction}").allowed
    remembered = counts.remembered
    assert remembered <= 2 * limits.FEW + 1
    assert counts.take("bot", limits.NEW_ROLES, "0").headers["X-RateLimit-Remaining"] == "248", "it is still open"
    counts.clear()
    for second in range(2):
        now += limits.WEBHOOKS.seconds
        for interaction in range(limits.FEW):
            assert counts.take("", limits.WEBHOOKS, f"{second} {interaction}").allowed
    remembered = counts.remembered
    assert remembered <= limits.FEW, "a reset forgets the room that was needed before it"
