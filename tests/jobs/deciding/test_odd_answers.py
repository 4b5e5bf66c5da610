"""Role writes while Discord gives one false answer, fails on one route, or has removed the bot."""

from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import select

from jobs import role_writer
from models import Member, Rule, transaction
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, a_town, until
from tests.jobs.watching import given, grants, looked_at

WRITES = "/guilds/{}/members/*/roles/*"
LIES = [
    (404, 10007, "Unknown Member"), (404, 10011, "Unknown Role"), (404, 10004, "Unknown Guild"),
    (403, 50001, "Missing Access"),
]  # fmt: skip
SHARED = {"message": "The resource is being rate limited.", "retry_after": 0.1, "global": False, "code": 40062}
ODD: list[dict[str, Any]] = [
    {"status": 502, "body": "<html>Bad Gateway</html>"},
    {"status": 503, "body": ""},
    {"status": 520, "body": "error code: 520"},
    {"status": 524, "body": "error code: 524"},
    {"status": 405, "body": {"message": "405: Method Not Allowed", "code": 0}},
    {"status": 403, "body": {"message": "internal network error", "code": 40333}},
    {"status": 403, "body": "<html>Attention Required</html>"},
    {"status": 404, "body": "<html>Not Found</html>"},
    {"status": 429, "body": "error code: 1015", "headers": {"Retry-After": "0"}},
    {"status": 429, "body": SHARED, "headers": {"X-RateLimit-Scope": "shared", "Retry-After": "1"}},
    {"status": 200, "body": ""},
    {"status": 200, "body": "<html>"},
    {"status": 502, "body": "<html>Bad Gateway</html>", "carried_out": True},
    {"status": 200, "body": "", "carried_out": True},
    *({"status": status, "body": {"message": said, "code": code}} for status, code, said in LIES),
]


async def rules(town: Town) -> set[tuple[str, str | None]]:
    async with transaction() as db:
        found = await db.exec(select(Rule).where(Rule.server_id == town.server_id))
        return {(rule.state, rule.pause_cause) for rule in found.all()}


async def left(town: Town) -> list[str]:
    async with transaction() as db:
        rows = await db.exec(select(Member).where(Member.server_id == town.server_id))
        return [row.discord_id for row in rows.all() if row.left_at is not None]


async def lies(town: Town, status: int, body: object, **more: Any) -> None:
    path = WRITES.format((await town.guild())["id"])
    await town.call("faults", target="discord", kind="answer", path=path, status=status, body=body, **more)


async def tried(town: Town) -> bool:
    return any(row.attempts > 0 for row in await grants(town))


async def test_a_false_word_on_role_writes_is_not_believed_and_heals(town: Town, engine: Engine) -> None:
    """Each member's writes get another one, again and again."""
    await town.join("erin", "frank")
    told = dict(zip(("carol", "dave", "erin", "frank"), LIES, strict=True))
    await town.all_buy(*told)
    guild = (await town.guild())["id"]
    for who, (status, code, said) in told.items():
        await town.prove(who)
        answer = {"path": f"/guilds/{guild}/members/{town.people[who]['id']}/roles/*", "status": status}
        body = {"message": said, "code": code}
        await town.call("faults", target="discord", kind="answer", **answer, body=body)
    await town.rule("Holder")

    async def all_tried() -> bool:
        attempts = [row.attempts for row in await grants(town)]
        return len(attempts) == len(LIES) and all(attempts)

    async with engine():
        await until(all_tried)
        assert await rules(town) == {("active", None)}
        assert await left(town) == []
        assert [row.state for row in await grants(town)] == ["giving"] * len(LIES)
        await town.heal()
        for who in told:
            await given(town, who)


async def test_odd_answers_in_the_middle_of_a_batch_lose_and_double_nothing(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(role_writer, "FIRST_REST_SECONDS", 0.01)
    buyers = [f"p{number}" for number in range(8)]
    await town.join(*buyers)
    await town.all_buy(*buyers)
    for name in buyers:
        await town.prove(name)
    await town.rule("Holder")
    await looked_at(town)
    for answer in ODD:
        await lies(town, **answer, times=1)
    start = await town.mark()
    async with engine():

        async def all_held() -> bool:
            async with transaction() as db:
                # The pauses of single changes are not tested here.
                await db.execute(text('UPDATE "grant" SET next_at = now() WHERE next_at > now()'))
            return [row.state for row in await grants(town)] == ["held"] * len(buyers)

        await until(all_held, 120)
        for name in buyers:
            assert await town.has(name, "Holder")
    assert await rules(town) == {("active", None)}
    assert await left(town) == []
    guild = (await town.guild())["id"]
    done = [
        request["path"] for request in await town.requests(start, "discord")
        if request["method"] == "PUT" and request["status"] == 204 and f"/guilds/{guild}/" in request["path"]
    ]  # fmt: skip
    assert len(done) == len(set(done)), "nobody is given the role twice"


async def test_a_server_that_let_the_bot_go_unheard_keeps_its_gift_until_the_bot_is_back(
    town: Town, engine: Engine
) -> None:
    await town.buys("carol")
    await town.prove("carol")
    await town.rule("Holder")
    await town.call("guilds", guild=town.name, action="kick_bot")
    async with engine():
        await until(lambda: tried(town))
        assert await rules(town) == {("active", None)}
        (gift,) = await grants(town)
        assert (gift.state, gift.last_error) == ("giving", "Discord: Missing Access")
        await town.call("guilds", guild=town.name, action="add_bot")
        await given(town)


async def test_a_member_whom_one_read_denies_is_still_there(town: Town, engine: Engine) -> None:
    token = await town.buys("carol")
    await town.prove("carol")
    await town.rule("Holder")
    async with engine():
        await given(town)
        guild, carol = (await town.guild())["id"], town.people["carol"]["id"]
        body = {"message": "Unknown Member", "code": 10007}
        path = f"/guilds/{guild}/members/{carol}"
        await town.call("faults", target="discord", kind="answer", method="GET", path=path, status=404, body=body)
        await town.sells(token)
        await town.look()

        async def gone() -> bool:
            return not await town.has("carol", "Holder")

        await until(gone)
    assert await left(town) == []


async def test_a_server_that_wants_two_factors_rests_with_its_reason_and_slows_no_other(
    town: Town, engine: Engine, sandbox_url: str
) -> None:
    async with a_town(sandbox_url, "ada", "erin", "mallory") as other:
        for place, people in ((town, ("carol", "dave")), (other, ("erin", "mallory"))):
            for who in people:
                await place.buys(who)
                await place.prove(who)
            await place.rule("Holder")
        await lies(town, 403, {"message": "Two factor is required for this operation", "code": 60003})
        mark = await town.mark()
        async with engine():
            await until(lambda: paused(town))
            for who in ("erin", "mallory"):
                await until(lambda who=who: other.has(who, "Holder"))
            assert await rules(other) == {("active", None)}
            async with transaction() as db:
                (row,) = (await db.exec(select(Rule).where(Rule.server_id == town.server_id))).all()
            assert (row.pause_cause, "two-factor authentication" in (row.pause_reason or "")) == ("refused", True)
            assert len(await town.writes(mark)) <= 4, "those that were under way together, and then none"
            assert {grant.state for grant in await grants(town)} == {"giving"}


async def paused(town: Town) -> bool:
    return await rules(town) == {("paused", "refused")}
