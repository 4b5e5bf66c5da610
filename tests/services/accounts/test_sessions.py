"""Sessions of signed-in browsers: how one is opened, found again and ended."""

import asyncio
from datetime import timedelta

import pytest
from sqlmodel import col, select, update

from models import Session, User, now, transaction
from services.accounts import sessions
from services.core.errors import SessionNotFound

pytestmark = pytest.mark.usefixtures("database")


async def person(name: str, grant_ends_in: timedelta = timedelta(days=30)) -> int:
    async with transaction() as db:
        user = User(discord_id=f"id-of-{name}", username=name, token_expires_at=now() + grant_ends_in)
        db.add(user)
        await db.flush()
        assert user.id is not None
        return user.id


async def opened(user_id: int, agent: str = "Browser") -> str:
    async with transaction() as db:
        return await sessions.open_session(db, user_id, agent)


async def found(session_id: str | None) -> str | None:
    async with transaction() as db:
        actor = await sessions.actor_of(db, session_id)
        return actor.username if actor else None


async def test_a_session_is_found_by_its_id_and_only_its_hash_is_stored():
    session_id = await opened(await person("ada"))
    assert await found(session_id) == "ada"
    assert len(session_id) == 43
    async with transaction() as db:
        row = (await db.exec(select(Session))).one()
    assert row.id_hash == sessions.hash_of(session_id)
    assert session_id not in repr(row)


@pytest.mark.parametrize("wrong", [None, "", "x", "A" * 43, "A" * 44, "' OR 1=1 --", "é" * 43, "\x00" * 43])
async def test_what_is_no_session_id_finds_nobody(wrong: str | None):
    await opened(await person("ada"))
    assert await found(wrong) is None


async def test_a_session_ends_with_its_time():
    session_id = await opened(await person("ada"))
    async with transaction() as db:
        await db.exec(update(Session).values(expires_at=now() - timedelta(seconds=1)))
    assert await found(session_id) is None


async def test_a_session_lives_no_longer_than_the_grant_of_discord():
    await opened(await person("ada", timedelta(hours=1)))
    async with transaction() as db:
        row = (await db.exec(select(Session))).one()
    assert row.expires_at <= now() + timedelta(hours=1)


async def test_a_session_lives_seven_days_at_most():
    await opened(await person("ada", timedelta(days=300)))
    async with transaction() as db:
        row = (await db.exec(select(Session))).one()
    assert row.expires_at <= now() + timedelta(days=7)


async def test_closing_tells_whose_last_session_it_was():
    ada = await person("ada")
    first, second = await opened(ada), await opened(ada)
    async with transaction() as db:
        assert await sessions.close(db, first) is None
        assert await sessions.close(db, first) is None
        assert await sessions.close(db, second) == ada
    assert await found(second) is None


async def test_of_the_last_two_sessions_that_end_at_once_one_is_the_last():
    ada = await person("ada")
    first, second = await opened(ada), await opened(ada)

    async def closed(session_id: str) -> int | None:
        async with transaction() as db:
            return await sessions.close(db, session_id)

    async with transaction() as db:
        assert await sessions.close(db, first) is None
        other = asyncio.create_task(closed(second))
        await asyncio.wait([other], timeout=0.1)
    assert await other == ada


async def test_people_see_and_close_only_their_own_sessions():
    ada, mallory = await opened(await person("ada")), await opened(await person("mallory"))
    async with transaction() as db:
        ada_actor, mallory_actor = await sessions.actor_of(db, ada), await sessions.actor_of(db, mallory)
        assert ada_actor is not None
        assert mallory_actor is not None
        (hers,) = await sessions.list_of(db, ada_actor)
        assert hers.current
        assert hers.user_agent == "Browser"
        with pytest.raises(SessionNotFound):
            await sessions.close_one(db, mallory_actor, hers.id)
    assert await found(ada) == "ada"


async def test_a_further_session_ends_the_one_that_was_not_used_for_longest(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sessions, "MOST", 2)
    ada = await person("ada")
    other = await opened(await person("mallory"))
    first, second = await opened(ada), await opened(ada)
    async with transaction() as db:
        used = update(Session).where(col(Session.id_hash) == sessions.hash_of(second))
        await db.exec(used.values(seen_at=now() - timedelta(hours=1)))
    third = await opened(ada)
    assert [await found(one) for one in (first, second, third, other)] == ["ada", None, "ada", "mallory"]


async def test_closing_all_ends_every_session_of_one_person_only():
    ada, carol = await person("ada"), await person("carol")
    first, second, carols = await opened(ada), await opened(ada), await opened(carol)
    async with transaction() as db:
        actor = await sessions.actor_of(db, first)
        assert actor is not None
        assert await sessions.close_all(db, actor) == 2
    assert await found(first) is None
    assert await found(second) is None
    assert await found(carols) == "carol"


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("hf_session=abc", "abc"),
        ("a=b; hf_session=abc; c=d", "abc"),
        ('hf_session="abc"', "abc"),
        ("hf_session=abc; hf_session=abc", "abc"),
        ("hf_session=abc; hf_session=def", None),
        ("xhf_session=abc", None),
        ("HF_SESSION=abc", None),
        ("hf_session", None),
        ("hf_session=", None),
        ("sandbox_user=ada", None),
        ("", None),
        (None, None),
    ],
)
def test_only_the_exact_cookie_counts(header: str | None, value: str | None):
    assert sessions.session_id_from_cookie_header(header) == value


async def test_an_odd_user_agent_is_kept_short_and_printable():
    await opened(await person("ada"), "Bad\x00\r\nAgent" + "x" * 10_000)
    async with transaction() as db:
        row = (await db.exec(select(Session))).one()
    assert row.user_agent.startswith("BadAgent")
    assert len(row.user_agent) == 300
