"""A move through the dashboard's calls: what it requires, its message in Discord, and which members have arrived."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlmodel import col, select, update

from gateways import gateways
from models import Grant, Member, RivalMove, Server, ServerMove, now, transaction
from services.core.actors import Actor
from services.guilds import members, verification_channel
from services.roles.moves import messages
from services.servers import notices
from tests.app.api.browsers import Browser
from tests.app.api.server.test_rivals import owner as owner
from tests.app.api.server.test_rivals import town as town
from tests.jobs.town import Town
from tests.jobs.writing.test_taking_over import handed


def days(count: float) -> str:
    return (now() + timedelta(days=count)).isoformat()


async def put(owner: Browser, town: Town, **changes: Any) -> Any:
    payload = {"until": days(7), "roles": [await town.role("Holder")], **changes}
    return await owner.client.put(f"/api/servers/{town.server_id}/move", json=payload)


async def test_a_program_replaces_only_the_move_that_it_has_seen(owner: Browser, town: Town) -> None:
    call = f"/api/servers/{town.server_id}/move"
    assert (await put(owner, town, seen=None)).status_code == 200, "there was none"
    assert (await put(owner, town, seen=None)).status_code == 409
    read = (await owner.client.get(call)).json()
    seen = {**read, "roles": [one["roleId"] for one in read["roles"]]}
    changed = await put(owner, town, until=days(9), seen=seen)
    assert changed.status_code == 200, changed.text
    refused = await put(owner, town, until=days(11), seen=seen)
    assert refused.status_code == 409
    assert refused.json()["message"].startswith("The move was changed meanwhile"), "a program has no form"
    assert (await owner.client.get(call)).json()["until"] == changed.json()["until"]
    assert (await put(owner, town, until=days(11))).status_code == 200, "without a word about it, any is replaced"
    assert (await put(owner, town, seen={"roles": []})).status_code == 422


async def said_in(town: Town, channel_id: str) -> list[dict[str, Any]]:
    listed = (await town.guild())["channels"]
    return next(one["messages"] for one in listed if one["id"] == channel_id)


async def test_a_move_says_per_role_who_has_arrived_and_who_else_moves_it(owner: Browser, town: Town) -> None:
    call, role_id = f"/api/servers/{town.server_id}/move", await town.role("Holder")
    assert (await owner.client.get(call)).status_code == 404
    for who in ("carol", "dave"):
        await handed(town, who)
    await town.see()
    await town.prove("carol")
    made = await put(owner, town)
    assert made.status_code == 200, made.text
    async with transaction() as db:
        moved = {"server_id": town.server_id, "discord_id": town.people["carol"]["id"], "role_id": role_id}
        db.add(Grant(**moved, state="held", had_before=True, rule_ids=[1]))
        db.add(RivalMove(**moved, taken=True, naming="named", actor_id="4242", actor_name="Collab.Land"))
    seen = (await owner.client.get(call)).json()
    (role,) = seen["roles"]
    (rival,) = role.pop("rivals")
    assert role == {
        "roleId": role_id, "roleName": "Holder", "roleColor": role["roleColor"], "right": 1, "wrong": 0,
        "unverified": 1, "unknown": 0, "taken": 0, "decided": True,
    }  # fmt: skip
    assert (rival["name"], seen["state"], seen["channelId"]) == ("Collab.Land", "running", None)
    named = await owner.client.get(f"{call}/members", params={"roleId": role_id})
    assert [one["name"] for one in named.json()["members"]] == [town.people["dave"]["username"]]
    assert (await owner.client.get(f"{call}/members", params={"roleId": "1"})).status_code == 404
    wrong = await owner.client.get(f"{call}/members", params={"roleId": role_id, "standing": "late"})
    assert wrong.status_code == 400
    early = await owner.client.post(f"{call}/approve")
    assert (early.status_code, "still runs" in early.json()["message"]) == (409, True)


async def test_who_could_not_be_read_or_is_judged_by_no_active_rule_is_unknown(owner: Browser, town: Town) -> None:
    await handed(town, "carol")
    await town.see()
    await town.prove("carol")
    (role,) = (await put(owner, town)).json()["roles"]
    assert (role["unknown"], role["right"]) == (1, 0), "nobody has judged them yet"
    async with transaction() as db:
        grant = Grant(
            server_id=town.server_id, discord_id=town.people["carol"]["id"], role_id=await town.role("Holder"),
            state="held", had_before=True, rule_ids=[1],
        )  # fmt: skip
        db.add(grant)
    (role,) = (await owner.client.get(f"/api/servers/{town.server_id}/move")).json()["roles"]
    assert (role["unknown"], role["right"], role["decided"]) == (0, 1, True)
    rules = (await owner.client.get(f"/api/verification-rules?serverId={town.server_id}")).json()
    await owner.client.patch(f"/api/verification-rules/{rules[0]['id']}", json={"state": "paused"})
    (role,) = (await owner.client.get(f"/api/servers/{town.server_id}/move")).json()["roles"]
    assert (role["unknown"], role["right"], role["decided"]) == (1, 0, False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"until": days(-1)}, "The date until which the move runs is in the future."),
        ({"until": days(400)}, "A move runs for at most a year."),
        ({"beginsAt": days(8)}, "The move begins before the date until which it runs."),
        ({"roles": []}, "Choose at least one role to hand over."),
        ({"roles": ["1"]}, "No rule of this server gives the role 1. Make a rule first."),
        ({"channelId": "1"}, "There is no such channel in this server (any more)."),
    ],
    ids=["past", "far", "backwards", "no role", "strange role", "strange channel"],
)
async def test_what_makes_no_sense_is_refused_and_nothing_is_stored(
    owner: Browser, town: Town, changes: dict[str, Any], message: str
) -> None:
    answer = await put(owner, town, **changes)
    assert (answer.status_code, answer.json()["message"]) == (400, message)
    assert (await owner.client.get(f"/api/servers/{town.server_id}/move")).status_code == 404


async def test_a_date_alone_means_the_whole_day(owner: Browser, town: Town) -> None:
    day = (datetime.now(UTC) + timedelta(days=5)).date()
    answer = await put(owner, town, until=day.isoformat())
    assert answer.json()["until"].startswith(f"{day}T23:59:59")
    for odd in ("tomorrow", "9999-99-99", None, [], {}):
        assert (await put(owner, town, until=odd)).status_code == 422


async def test_a_begin_before_the_first_year_does_not_make_a_move_that_nobody_can_read(
    owner: Browser, town: Town
) -> None:
    made = await put(owner, town, beginsAt="0001-01-01T00:00:00+14:00")
    assert (made.status_code, made.json()["state"]) == (200, "running")
    assert (await owner.client.delete(f"/api/servers/{town.server_id}/move")).status_code == 200


async def test_the_panel_and_one_message_say_what_to_do_by_when_until_the_end(owner: Browser, town: Town) -> None:
    assert (await owner.client.get(f"/api/servers/{town.server_id}/move")).status_code == 404
    guild = await town.guild()
    general = guild["channels"][0]["id"]
    role_id = await town.role("Holder")
    until = (now() + timedelta(days=7)).replace(microsecond=0)
    when = f"<t:{int(until.timestamp())}:F>"
    made = (await put(owner, town, until=until.isoformat(), channelId=general)).json()
    assert (made["channelId"], made["messagesUpdated"]) == (general, True)
    (message,) = await said_in(town, general)
    (embed,) = message["embeds"]
    assert f"<@&{role_id}>" in embed["description"]
    assert when in embed["description"]
    later = (await put(owner, town, until=days(9), channelId=general)).json()
    assert later["until"] > made["until"]
    (message,) = await said_in(town, general)
    assert when not in message["embeds"][0]["description"], "the message is edited, not posted twice"
    ended = await owner.client.delete(f"/api/servers/{town.server_id}/move")
    assert (ended.status_code, ended.json()["members"], ended.json()["messagesUpdated"]) == (200, 0, True)
    (message,) = await said_in(town, general)
    assert "was called off" in message["embeds"][0]["title"]
    assert (await owner.client.delete(f"/api/servers/{town.server_id}/move")).status_code == 404


async def test_after_the_date_the_panel_and_the_message_name_none_and_a_failure_is_tried_again(
    owner: Browser, town: Town
) -> None:
    general = (await town.guild())["channels"][0]["id"]
    ada = town.people["ada"]
    async with transaction() as db:
        await verification_channel.create_or_repair(
            db, gateways(), Actor(1, ada["id"], ada["username"]), town.server_id
        )
        panel_id = (await db.get_one(Server, town.server_id)).verify_channel_id or ""
    assert (await put(owner, town, channelId=general)).json()["messagesUpdated"] is True

    async def texts() -> str:
        return str([(await said_in(town, channel))[-1]["embeds"] for channel in (general, panel_id)])

    async def turn() -> bool:
        async with transaction() as db:
            return await messages.bring_up_to_date(db, gateways())

    assert "<t:" in await texts()
    assert not await turn(), "the date is to come"
    async with transaction() as db:
        over = now() - timedelta(minutes=1)
        await db.exec(update(ServerMove).values(until=over, messages_at=over))
    await town.break_("500", "discord")
    assert await turn()
    await town.heal()
    assert not await turn(), "there is a pause"
    assert "<t:" in await texts()
    async with transaction() as db:
        await db.exec(update(ServerMove).values(messages_at=now()))
    assert await turn()
    said = await texts()
    assert ("<t:" in said, said.count("before an admin ends the move")) == (False, 2)
    assert not await turn(), "they are up to date"


async def test_a_member_without_a_wallet_is_reminded_where_they_are(owner: Browser, town: Town) -> None:
    for who in ("carol", "dave"):
        await handed(town, who)
    await town.see()
    await town.prove("carol")

    async def told(who: str) -> list[str]:
        person = town.people[who]
        async with transaction() as db:
            member = await members.find_member(db, (await town.guild())["id"], person["id"], person["username"])
            found = await notices.waiting(db, member)
            await notices.mark_shown(db, found)
            return [one.text for one in found]

    assert await told("dave") == []
    await put(owner, town)
    for _ in range(2):
        (reminder,) = await told("dave")
        assert "will decide about Holder. Verify a wallet until " in reminder
    assert await told("carol") == []
    assert await told("ada") == []
    others = [f"{number:018}" for number in range(14)]
    async with transaction() as db:
        (move,) = (await db.exec(select(ServerMove))).all()
        holder, kept = move.roles[0], col(Member.discord_id) == town.people["dave"]["id"]
        await db.exec(update(ServerMove).values(roles=[holder, *others]))
        await db.exec(update(Member).where(kept).values(roles=[holder, *others]))
    (reminder,) = await told("dave")
    assert (reminder.count("Unknown Role"), "and 5 more" in reminder) in {(9, True), (10, True)}
    async with transaction() as db:
        await db.exec(update(ServerMove).values(roles=[holder]))
        await db.exec(update(Member).where(kept).values(roles=[holder]))
    async with transaction() as db:
        await db.exec(update(ServerMove).values(until=now() - timedelta(hours=1)))
    (reminder,) = await told("dave")
    assert reminder.endswith("Verify a wallet now to keep it."), "no date that is over"


async def test_why_says_that_a_role_of_the_move_stays_until_its_end_is_approved(owner: Browser, town: Town) -> None:
    await handed(town, "dave")
    await town.see()
    await put(owner, town)
    about = {"server_id": town.server_id, "discord_id": town.people["dave"]["id"], "role_id": await town.role("Holder")}

    async def then() -> str:
        answer = await owner.client.get(f"/api/servers/{town.server_id}/members/{about['discord_id']}/why")
        assert answer.status_code == 200, answer.text
        (role,) = answer.json()["roles"]
        return role["next"]

    stays = "Stays until an admin approves the end of the move from another bot."
    assert await then() == stays, "before it is judged at all"
    async with transaction() as db:
        db.add(Grant(**about, state="held", had_before=True))
    assert await then() == stays
    async with transaction() as db:
        await db.exec(update(Grant).values(no_since=now()))
    assert await then() == stays
    async with transaction() as db:
        await db.exec(update(ServerMove).values(state="approved", approved_at=now()))
    assert await then() == "Taken at the next check, if a second reading agrees."


async def test_a_large_server_shows_the_last_stored_count(
    owner: Browser, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    from services.roles.moves import coverage

    await handed(town, "carol")
    await town.see()
    await put(owner, town)
    async with transaction() as db:
        assert await coverage.store_oldest(db)
        assert not await coverage.store_oldest(db), "each is stored once in a while"
        left = update(Member).where(col(Member.discord_id) == town.people["carol"]["id"])
        await db.exec(left.values(left_at=now()))
    call = f"/api/servers/{town.server_id}/move"
    assert (await owner.client.get(call)).json()["roles"][0]["unverified"] == 0
    monkeypatch.setattr(coverage, "LARGE", 0)
    seen = (await owner.client.get(call)).json()
    assert seen["roles"][0]["unverified"] == seen["days"][0]["unverified"] == 1


async def test_an_approved_move_is_replaced_by_a_new_one(owner: Browser, town: Town) -> None:
    await put(owner, town)
    call = f"/api/servers/{town.server_id}/move"
    async with transaction() as db:
        await db.exec(update(ServerMove).values(begins_at=now() - timedelta(days=1), until=now()))
    approved = await owner.client.post(f"{call}/approve")
    assert (approved.status_code, approved.json()["state"]) == (200, "approved"), approved.text
    assert (await owner.client.post(f"{call}/approve")).status_code == 404
    assert (await put(owner, town)).json()["state"] == "running"


async def test_a_program_approves_only_the_end_of_the_move_that_it_has_seen(owner: Browser, town: Town) -> None:
    call = f"/api/servers/{town.server_id}/move"
    read = (await put(owner, town)).json()
    seen = {**read, "roles": [one["roleId"] for one in read["roles"]]}
    await town.rule("Whale")
    # Another admin adds a role to the move that the program has read, and its time ends.
    roles = [*seen["roles"], await town.role("Whale")]
    assert (await put(owner, town, roles=roles, until=read["until"])).status_code == 200
    over = now() - timedelta(minutes=1)
    async with transaction() as db:
        await db.exec(update(ServerMove).values(until=over))
    refused = await owner.client.post(f"{call}/approve", json={"seen": {**seen, "until": over.isoformat()}})
    assert refused.status_code == 409
    assert refused.json()["message"].startswith("The move was changed meanwhile")
    assert (await owner.client.get(call)).json()["state"] == "over"
    approved = await owner.client.post(
        f"{call}/approve", json={"seen": {**seen, "roles": roles, "until": over.isoformat()}}
    )
    assert (approved.status_code, approved.json()["state"]) == (200, "approved")


async def test_a_program_that_has_seen_no_move_approves_none(owner: Browser, town: Town) -> None:
    """`seen` means the same as in PUT: null stands for no move at all, and without it any is meant."""
    await put(owner, town)
    call = f"/api/servers/{town.server_id}/move"
    async with transaction() as db:
        await db.exec(update(ServerMove).values(begins_at=now() - timedelta(days=1), until=now()))
    assert (await owner.client.post(f"{call}/approve", json={"seen": None})).status_code == 409
    assert (await owner.client.get(call)).json()["state"] == "over"
    assert (await owner.client.post(f"{call}/approve", json={})).status_code == 200
