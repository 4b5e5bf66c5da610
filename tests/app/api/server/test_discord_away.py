"""Reads while Discord is away use its last answer, for at most a minute. Changes always ask Discord."""

from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from gateways import gateways
from gateways.discord.own_guilds import OwnGuilds
from services.guilds import permission_cache, shared_reads
from tests.app.api.browsers import Browser
from tests.app.api.server.test_rights import AT, CALLS, READS, RULES, Names, change, make, names_of
from tests.jobs.town import Town, a_town

LIVE = {
    "GET /api/discord/roles",
    f"POST {RULES}/preview",
    f"GET {AT}/events/{{batch}}/undo",
    f"GET {AT}/payout.csv",
    f"POST {AT}/move/preview",
    f"POST {AT}/migrations/preview",
    f"POST {AT}/migrations/role/preview",
    f"POST {AT}/migrations/{{migration_id}}/preview",
}
"""Reads of facts that only Discord has, reads that come just before a change, and reads recorded in the log."""
FROM_TABLES = [call for call in READS if call[0] not in LIVE]
CHANGES = [call for call in CALLS if call not in READS and call[0] != "POST /api/servers"]


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town that ada owns; bob administers it by the role Admin, and carol is a member."""
    async with a_town(sandbox_url, "ada", "bob", "carol") as made:
        await change(made, "bob", "add_role", role="Admin")
        await made.see()
        await made.prove("carol")
        yield made


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function after whose call nobody waits long for an absent Discord; before it Discord may be slow."""

    def begin() -> None:
        monkeypatch.setattr(gateways().discord, "_deadline", 0.3)
        monkeypatch.setattr(permission_cache, "FIRST_SECONDS", 0.2)

    return begin


async def someone(new_browser: Callable[[], Browser], town: Town, who: str) -> Browser:
    browser = new_browser()
    await browser.sign_in(town.people[who]["username"])
    return browser


async def rules(browser: Browser, town: Town) -> httpx.Response:
    return await browser.client.get(f"{RULES}?serverId={town.server_id}")


def as_if_unread() -> None:
    """Make this process forget everything that it has read from Discord."""
    permission_cache._caches.clear()
    shared_reads._asked.clear()
    gateways().oauth._own_guilds = OwnGuilds()


@pytest.mark.parametrize("how", ["down", "slow"])
async def test_rules_members_and_log_are_read_by_discords_last_answer_and_nothing_is_changed_by_it(
    browser: Browser, town: Town, hasty: Callable[[], None], how: str
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    names: Names = await names_of(town)
    assert (await rules(browser, town)).status_code == 200
    await town.break_(how, "discord")
    hasty()
    for call in FROM_TABLES:
        answer = await make(browser, call, names)
        assert answer.is_success, f"{call[0]}: {answer.status_code} {answer.text}"
    for call in CHANGES:
        answer = await make(browser, call, names)
        assert answer.status_code == 503, f"{call[0]}: {answer.status_code} {answer.text}"
        assert answer.json()["message"].startswith("Discord does not answer as it should right now.")


async def test_a_silent_discord_is_not_waited_for_where_its_last_answer_stands(
    browser: Browser, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    assert (await rules(browser, town)).status_code == 200
    await town.break_("slow", "discord")
    monkeypatch.setattr(permission_cache, "FIRST_SECONDS", 0.2)
    # A call that waited for Discord itself would hang for longer than any test may take.
    monkeypatch.setattr(gateways().discord, "_deadline", 100_000.0)
    assert (await rules(browser, town)).status_code == 200
    assert (await rules(browser, town)).status_code == 200


async def test_the_last_answer_counts_for_its_time_only(
    browser: Browser, town: Town, hasty: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert permission_cache.KEPT_SECONDS <= 60
    await browser.sign_in(town.people["ada"]["username"])
    assert (await rules(browser, town)).status_code == 200
    await town.break_("down", "discord")
    hasty()
    assert (await rules(browser, town)).status_code == 200
    monkeypatch.setattr(permission_cache, "KEPT_SECONDS", 0.0)
    answer = await rules(browser, town)
    assert (answer.status_code, answer.json()["message"][:23]) == (503, "Discord does not answer")


async def test_reading_by_the_last_answer_does_not_prolong_it(
    browser: Browser, town: Town, hasty: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    assert (await rules(browser, town)).status_code == 200
    cache = permission_cache.of(gateways().discord)
    before = dict(cache._runs)
    await town.break_("down", "discord")
    hasty()
    assert (await rules(browser, town)).status_code == 200
    assert dict(cache._runs) == before


async def test_who_was_refused_last_reads_nothing_while_discord_is_away(
    browser: Browser, town: Town, hasty: Callable[[], None]
) -> None:
    await browser.sign_in(town.people["bob"]["username"])
    assert (await rules(browser, town)).status_code == 200
    await change(town, "bob", "remove_role", role="Admin")
    assert (await rules(browser, town)).status_code == 404
    await town.break_("down", "discord")
    hasty()
    assert (await rules(browser, town)).status_code == 503


async def test_what_the_bot_heard_since_counts_more_than_the_last_answer(
    browser: Browser, town: Town, hasty: Callable[[], None]
) -> None:
    await browser.sign_in(town.people["bob"]["username"])
    assert (await rules(browser, town)).status_code == 200
    await change(town, "bob", "remove_role", role="Admin")
    await town.see()
    await town.break_("down", "discord")
    hasty()
    assert (await rules(browser, town)).status_code == 503


async def test_who_was_never_asked_about_reads_nothing_while_discord_is_away(
    new_browser: Callable[[], Browser], town: Town, hasty: Callable[[], None]
) -> None:
    ada, carol = await someone(new_browser, town, "ada"), await someone(new_browser, town, "carol")
    as_if_unread()
    await town.break_("down", "discord")
    hasty()
    assert (await rules(ada, town)).status_code == 503
    assert (await rules(carol, town)).status_code == 503


async def test_once_discord_is_back_its_answer_counts_again(
    browser: Browser, town: Town, hasty: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    await browser.sign_in(town.people["bob"]["username"])
    assert (await rules(browser, town)).status_code == 200
    await town.break_("down", "discord")
    hasty()
    assert (await rules(browser, town)).status_code == 200
    await change(town, "bob", "remove_role", role="Admin")
    await town.heal()
    monkeypatch.setattr(gateways().discord, "_deadline", 30.0)
    monkeypatch.setattr(permission_cache, "FIRST_SECONDS", 30.0)
    monkeypatch.setattr(permission_cache, "NEXT_SECONDS", 30.0)
    shared_reads._asked.clear()
    assert (await rules(browser, town)).status_code == 404
