"""A token without the scope for members reads the name of no member, neither on Health nor of a move."""

from collections.abc import Callable
from datetime import timedelta

from models import ServerMove, now, transaction
from tests.app.api.browsers import Browser
from tests.app.api.requests.test_tokens import made, program
from tests.app.api.servers.test_rivals import lost, named, town
from tests.jobs.town import Town

__all__ = ["town"]


async def test_a_token_that_may_only_read_learns_no_persons_name(
    new_browser: Callable[[], Browser], browser: Browser, town: Town
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    role_id = await town.role("Holder")
    async with transaction() as db:
        db.add(ServerMove(server_id=town.server_id, roles=[role_id], until=now() + timedelta(days=3)))
    await lost(town, "carol", times=2)
    await named("Dave the moderator", bot=False)
    caller = program(new_browser, (await made(browser, town, scopes=["read"]))["token"])
    at = f"/api/servers/{town.server_id}"
    assert (await caller.client.get(f"{at}/members")).status_code == 403
    said = {path: (await caller.client.get(f"{at}/{path}")).text for path in ("health", "move")}
    assert {path: "Dave the moderator" in text or "4242" in text for path, text in said.items()} == {
        "health": False, "move": False,
    }  # fmt: skip
