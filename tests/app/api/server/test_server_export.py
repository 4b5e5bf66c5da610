"""The export of a server: only for people who run it, with the wallets of those members who allow it."""

import csv
import io
from collections.abc import Awaitable, Callable
from itertools import count

import httpx
import pytest
from sqlmodel import delete, select

from app.api import activity as activity_calls
from models import Event, Member, MemberChoice, Server, Session, User, transaction
from models.db.session import AsyncSession
from services.accounts import sessions
from services.accounts.developers import api_tokens
from services.core.addresses import shorten
from services.core.errors import ServerNotFound
from services.guilds import permissions
from services.servers import export
from tests.app.api.browsers import PUBLIC_URL, Browser
from tests.app.api.server.test_members import joined, ruled, world  # noqa: F401  (fixtures)
from tests.support.builders import address


async def shares(discord_id: str, server_id: int) -> None:
    async with transaction() as db:
        user = (await db.exec(select(User).where(User.discord_id == discord_id))).one()
        db.add(MemberChoice(server_id=server_id, user_id=user.id or 0, share_wallets=True))


async def test_members_are_all_there_and_wallets_only_with_consent(
    browser: Browser,
    ruled: dict[str, object],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(export, "PAGE", 2)  # to have several pages
    server_id, role = int(str(ruled["serverId"])), str(ruled["roleName"])
    open_, closed = address(), address()
    one = await joined(dict(ruled), "=SUM(A1)", wallet=open_, role=True)
    two = await joined(dict(ruled), "private", wallet=closed)
    await shares(one, server_id)
    for name in ("carol", "dave", "erin"):
        await joined(dict(ruled), name)
    table = await browser.client.get(f"/api/servers/{server_id}/members.csv")
    assert table.status_code == 200
    assert table.headers["content-disposition"] == f'attachment; filename="members-{server_id}.csv"'
    rows = {row["member (id)"]: row for row in csv.DictReader(io.StringIO(table.text, newline=""))}
    async with transaction() as db:
        everybody = (await db.exec(select(Member.discord_id).where(Member.server_id == server_id))).all()
    assert rows.keys() == set(everybody)
    assert len(rows) == 5
    assert rows[one]["wallets shared with admins"] == shorten(open_)
    assert rows[one]["roles"] == role
    assert rows[one]["member"] == "'=SUM(A1)"
    assert rows[two]["wallets shared with admins"] == ""
    assert rows[two]["has a wallet that counts"] == "yes"
    whole = (await browser.client.get(f"/api/servers/{server_id}/export")).json()
    assert [found["id"] for found in whole["rules"]] == [ruled["id"]]
    members = {found["discordId"]: found for found in whole["members"]}
    assert members.keys() == set(everybody)
    assert members[one]["wallets"] == [shorten(open_)]
    assert members[two]["wallets"] == []
    for told in (table.text, str(whole)):
        assert open_ not in told
        assert closed not in told
    async with transaction() as db:
        kinds = (await db.exec(select(Event.kind).where(Event.kind == "server.exported"))).all()
    assert len(kinds) == 2


@pytest.mark.parametrize("call", ["export", "members.csv"])
async def test_nobody_else_takes_it_along(
    new_browser: Callable[[], Browser],
    ruled: dict[str, object],  # noqa: F811
    call: str,
) -> None:
    other = new_browser()
    await other.sign_in("carol")
    answer = await other.client.get(f"/api/servers/{ruled['serverId']}/{call}")
    assert answer.status_code == 404
    async with transaction() as db:
        assert (await db.exec(select(Event).where(Event.kind == "server.exported"))).all() == []


async def test_a_server_without_rules_is_an_empty_document(browser: Browser, ruled: dict[str, object]) -> None:  # noqa: F811
    server_id = int(str(ruled["serverId"]))
    await browser.client.delete(f"/api/verification-rules/{ruled['id']}")
    async with transaction() as db:
        for row in (await db.exec(select(Member).where(Member.server_id == server_id))).all():
            await db.delete(row)
        assert await db.get(Server, server_id)
    whole = (await browser.client.get(f"/api/servers/{server_id}/export")).json()
    assert (whole["serverId"], whole["members"]) == (server_id, [])


CALLS = ("export", "members.csv", "events.csv", "payout.csv", "address-lists/{list}")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("lost", ["rights", "session", "token"])
async def test_a_download_breaks_off_once_its_reader_may_not_read_any_more(
    browser: Browser,
    ruled: dict[str, object],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    lost: str,
) -> None:
    """The server closes the connection of an answer that fails before its end."""
    server_id = int(str(ruled["serverId"]))
    digest = await a_list(browser, server_id)
    monkeypatch.setattr(activity_calls, "CSV_PAGE", 1)
    body = {"name": "nightly", "scopes": ["read", "rules", "members"]}
    token = (await browser.client.post(f"/api/servers/{server_id}/tokens", json=body)).json()
    headers = {"authorization": f"Bearer {token['token']}"} if lost == "token" else {}
    path = f"/api/servers/{server_id}/{call.format(list=digest)}"

    async def read() -> httpx.Response:
        if not headers:
            return await browser.client.get(path)
        async with httpx.AsyncClient(transport=browser.client._transport, base_url=PUBLIC_URL) as program:
            return await program.get(path, headers=headers)

    assert (await read()).status_code == 200

    async def no_longer(*_: object) -> bool:
        return False

    async def signed_out(db: AsyncSession, id_hash: bytes) -> bool:
        await db.exec(delete(Session))
        return await is_open(db, id_hash)

    is_open = sessions.is_open
    if lost == "session":
        monkeypatch.setattr(sessions, "is_open", signed_out)
    elif lost == "token":
        monkeypatch.setattr(api_tokens, "is_valid", no_longer)
    else:
        # The bot has reported it, and Discord says the same. Payouts begin with another check, that of a change.
        monkeypatch.setattr(permissions, "is_listed", no_longer)
        monkeypatch.setattr(permissions, "_asked_to_read", refuses_from(1 if call == "payout.csv" else 2))
    with pytest.raises(RuntimeError, match="response already started"):
        await read()


def refuses_from(turn: int) -> Callable[..., Awaitable[None]]:
    """Return an answer of Discord that is yes at first, and no from this turn on."""
    turns = count(1)

    async def asked(*_: object, **_named: object) -> None:
        if next(turns) >= turn:
            raise ServerNotFound

    return asked


async def a_list(browser: Browser, server_id: int) -> str:
    text = "\n".join(address() for _ in range(3))
    answer = await browser.client.post(f"/api/servers/{server_id}/address-lists", content=text)
    assert answer.status_code == 201, answer.text
    return answer.json()["list"]
