"""REST of the sandbox's Discord: what a bot may do, and refusals in Discord's own wording."""

from datetime import UTC, datetime, timedelta

import pytest

from sandbox.discord.answers import limits
from tests.sandbox.conftest import ADMIN, BASE, BOT_ROLE, CLUB, COLLECTOR, FOUNDER, HOLDER, Outside, role_of
from tests.sandbox.discord.gateway.test_gateway import ready

GENERAL = f"/channels/{int(BASE) + 100}"
CAROL, ADA, BOB = "1150000000000000303", "1150000000000000101", "1150000000000000202"


def grant_path(guild: str, user: str, role: str) -> str:
    return f"/guilds/{guild}/members/{user}/roles/{role}"


async def test_a_role_below_the_bot_can_be_given_twice_and_taken_twice(discord: Outside):
    path = grant_path(BASE, CAROL, role_of(BASE, HOLDER))
    assert [(await discord.bot("PUT", path)).status_code for _ in range(2)] == [204, 204]
    assert (await discord.member(BASE, "carol"))["roles"] == [role_of(BASE, HOLDER)]
    assert [(await discord.bot("DELETE", path)).status_code for _ in range(2)] == [204, 204]
    assert (await discord.member(BASE, "carol"))["roles"] == []


@pytest.mark.parametrize(
    ("role", "status", "code"),
    [
        (role_of(BASE, FOUNDER), 403, 50013),
        (role_of(BASE, BOT_ROLE), 403, 50013),
        (BASE, 400, 50028),
        ("99", 404, 10011),
    ],
)
async def test_roles_that_the_bot_may_not_give_are_refused(discord: Outside, role: str, status: int, code: int):
    answer = await discord.bot("PUT", grant_path(BASE, CAROL, role))
    assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_admin_stands_below_the_bot_so_only_care_keeps_it_from_being_given(discord: Outside):
    assert (await discord.bot("PUT", grant_path(BASE, CAROL, role_of(BASE, ADMIN)))).status_code == 204


async def test_a_guild_without_the_bot_does_not_exist_for_it_and_its_parts_are_refused(discord: Outside):
    answer = await discord.bot("GET", f"/guilds/{CLUB}")
    assert (answer.status_code, answer.json()) == (404, {"message": "Unknown Guild", "code": 10004})
    member = f"/guilds/{CLUB}/members/{CAROL}"
    parts = [("GET", part) for part in (f"/guilds/{CLUB}/roles", f"/guilds/{CLUB}/channels", member)]
    for method, path in [*parts, ("PUT", f"{member}/roles/{role_of(CLUB, HOLDER)}")]:
        answer = await discord.bot(method, path)
        assert (answer.status_code, answer.json()) == (403, {"message": "Missing Access", "code": 50001})
    assert (await discord.bot("GET", "/guilds/1/roles")).json()["code"] == 10004, "nobody is in it"
    channel = (await discord.guild(CLUB))["channels"][0]["id"]
    assert (await discord.bot("GET", f"/channels/{channel}")).json()["code"] == 50001


async def test_a_user_who_is_no_member_is_told_from_nobody(discord: Outside):
    await discord.control("members", guild=BASE, user="carol", action="leave")
    assert (await discord.bot("GET", f"/guilds/{BASE}/members/{CAROL}")).json()["code"] == 10007
    assert (await discord.bot("GET", f"/guilds/{BASE}/members/5")).json()["code"] == 10013


async def test_a_wrong_token_is_a_bare_401(discord: Outside):
    answer = await discord.rest("GET", "/users/@me", "Bot nobody's")
    assert (answer.status_code, answer.json()) == (401, {"message": "401: Unauthorized", "code": 0})


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", f"/guilds/{BASE}/roles", "GET, HEAD, PATCH, POST"),
        ("POST", f"/guilds/{BASE}/members/{CAROL}/roles/1", "DELETE, PUT"),
        ("GET", "/oauth2/token", "POST"),
    ],
)
async def test_a_method_that_a_path_does_not_have_is_a_bare_405(discord: Outside, method: str, path: str, allow: str):
    """Clients of Discord have met this body (https://github.com/bwmarrin/discordgo/issues/1461)."""
    answer = await discord.http.request(method, f"/discord/api/v10{path}")
    assert (answer.status_code, answer.json()) == (405, {"message": "405: Method Not Allowed", "code": 0})
    assert (answer.headers["allow"], answer.headers["via"]) == (allow, "1.1 google")
    nothing = await discord.http.get("/discord/api/v10/nothing/here")
    assert (nothing.status_code, nothing.json()) == (404, {"message": "404: Not Found", "code": 0})


async def test_a_time_out_lasts_at_most_28_days_and_spares_administrators(discord: Outside):
    """Discord's documentation of Modify Guild Member, and its refusal in https://github.com/discord-jda/JDA/issues/2074."""
    moderator = str(1 << 40)
    await discord.control("guilds", guild=BASE, action="edit_role", role="HoldfastBot", permissions=moderator)
    now = datetime.now(UTC)
    for ahead, status in ((timedelta(days=28, minutes=5), 400), (timedelta(days=27), 200), (timedelta(days=-1), 200)):
        body = {"communication_disabled_until": (now + ahead).isoformat()}
        answer = await discord.bot("PATCH", f"/guilds/{BASE}/members/{CAROL}", body)
        assert answer.status_code == status, answer.text
        if status == 400:
            (error,) = answer.json()["errors"]["communication_disabled_until"]["_errors"]
            assert error["message"] == "Invalid communication disabled timestamp"
    bob = await discord.bot("PATCH", f"/guilds/{BASE}/members/{BOB}", body)
    assert (bob.status_code, bob.json()["code"]) == (403, 50013)


async def test_members_come_in_pages_by_id(discord: Outside):
    first = await discord.bot("GET", f"/guilds/{BASE}/members", params={"limit": 3})
    last = first.json()[-1]["user"]["id"]
    second = await discord.bot("GET", f"/guilds/{BASE}/members", params={"limit": 1000, "after": last})
    ids = [member["user"]["id"] for member in first.json() + second.json()]
    assert len(first.json()) == 3
    assert ids == sorted(ids, key=int)
    assert len(set(ids)) == 7
    assert len((await discord.bot("GET", f"/guilds/{BASE}/members")).json()) == 1


async def test_role_writes_share_ten_in_ten_seconds_per_guild_and_a_429_says_everything(discord: Outside):
    await discord.control("guilds", guild=CLUB, action="add_bot")
    path = grant_path(BASE, CAROL, role_of(BASE, HOLDER))
    answers = [await discord.bot("PUT" if n % 2 else "DELETE", path) for n in range(11)]
    refused = answers[-1]
    assert [answer.status_code for answer in answers] == [204] * 10 + [429]
    assert refused.headers["via"] == "1.1 google"
    assert refused.headers["x-ratelimit-scope"] == "user"
    assert refused.headers["content-type"] == "application/json"
    assert 0 < refused.json()["retry_after"] <= 10
    assert refused.json()["global"] is False
    other_guild = await discord.bot("PUT", grant_path(CLUB, CAROL, role_of(CLUB, HOLDER)))
    assert other_guild.status_code == 204
    assert other_guild.headers["x-ratelimit-bucket"] == refused.headers["x-ratelimit-bucket"]


async def test_the_fifty_first_call_in_a_second_meets_the_global_limit(
    discord: Outside, monkeypatch: pytest.MonkeyPatch
):
    # A longer second, in which a busy machine can make that many calls.
    monkeypatch.setattr(limits, "GLOBAL_SECONDS", 120.0)
    paths = ("/users/@me", f"/guilds/{BASE}", f"/guilds/{BASE}/roles")
    answers = [await discord.bot("GET", paths[n % 3]) for n in range(51)]
    assert [answer.status_code for answer in answers] == [200] * 50 + [429]
    assert answers[-1].headers["x-ratelimit-global"] == "true"
    assert answers[-1].json()["global"] is True


async def test_new_roles_lie_at_the_bottom_and_can_be_moved_below_the_bot_only(discord: Outside):
    made = await discord.bot("POST", f"/guilds/{BASE}/roles", {"name": "VIP", "permissions": "0"})
    vip = made.json()["id"]
    assert made.json()["position"] == 1
    moved = await discord.bot("PATCH", f"/guilds/{BASE}/roles", [{"id": vip, "position": 3}])
    names = [role["name"] for role in moved.json()]
    assert names[:5] == ["@everyone", "Holder", "Collector", "VIP", "Whale"]
    too_high = await discord.bot("PATCH", f"/guilds/{BASE}/roles", [{"id": vip, "position": 8}])
    assert too_high.json()["code"] == 50013
    # A client that lists every role with new numbers, which is allowed while the order above the bot's own role stays.
    every = [{"id": role["id"], "position": at} for at, role in enumerate(moved.json())]
    every[1]["position"], every[2]["position"] = 2, 1
    whole = await discord.bot("PATCH", f"/guilds/{BASE}/roles", every)
    assert [role["name"] for role in whole.json()][:3] == ["@everyone", "Collector", "Holder"]
    every[-1]["position"], every[-2]["position"] = every[-2]["position"], every[-1]["position"]
    assert (await discord.bot("PATCH", f"/guilds/{BASE}/roles", every)).json()["code"] == 50013
    powerful = await discord.bot("PATCH", f"/guilds/{BASE}/roles/{vip}", {"permissions": "8"})
    assert powerful.json()["code"] == 50013


async def test_the_audit_log_tells_who_did_what_and_why_to_a_bot_that_may_read_it(discord: Outside):
    path, log = grant_path(BASE, CAROL, role_of(BASE, HOLDER)), f"/guilds/{BASE}/audit-logs"
    reason = {"X-Audit-Log-Reason": "Sold%20the%20last%20one%20%E2%9C%93"}
    await discord.bot("PUT", path)
    await discord.bot("DELETE", path, headers=reason)
    assert (await discord.bot("GET", log)).json()["code"] == 50013
    await discord.control("guilds", guild=BASE, action="edit_role", role="HoldfastBot", permissions=str(1 << 7))
    told = (await discord.bot("GET", log, params={"user_id": discord.settings["DISCORD_CLIENT_ID"]})).json()
    newest, before = told["audit_log_entries"]
    holder = [{"id": role_of(BASE, HOLDER), "name": "Holder"}]
    assert (newest["action_type"], newest["target_id"], newest["reason"]) == (25, CAROL, "Sold the last one ✓")
    assert [one["changes"] for one in (newest, before)] == [
        [{"key": "$remove", "new_value": holder}], [{"key": "$add", "new_value": holder}],
    ]  # fmt: skip
    assert "reason" not in before
    assert {user["username"] for user in told["users"]} == {"HoldfastBot", "carol"}
    earliest = await discord.bot("GET", log, params={"limit": 1, "after": "0", "action_type": 31})
    assert [one["action_type"] for one in earliest.json()["audit_log_entries"]] == [31]


async def test_the_audit_log_names_the_other_bot_that_moved_a_role(discord: Outside):
    rival = await discord.control("people", username="rivalbot", bot=True)
    assert "rivalbot" not in {user["username"] for user in (await discord.world())["users"]}, "nobody signs in as it"
    await discord.control("members", guild=BASE, user="rivalbot", action="join")
    moved = {"guild": BASE, "user": "carol", "role": "Holder", "by": "rivalbot"}
    await discord.control("members", **moved, action="add_role")
    await discord.control("members", **moved, action="remove_role")
    await discord.control("guilds", guild=BASE, action="edit_role", role="HoldfastBot", permissions=str(1 << 7))
    log = (await discord.bot("GET", f"/guilds/{BASE}/audit-logs", params={"action_type": 25})).json()
    told = [(one["user_id"], one["target_id"], one["changes"][0]["key"]) for one in log["audit_log_entries"]]
    assert told == [(rival["id"], CAROL, "$remove"), (rival["id"], CAROL, "$add")]
    assert {user["username"]: user.get("bot", False) for user in log["users"]} == {"rivalbot": True, "carol": False}
    await discord.control("members", guild=BASE, user="rivalbot", action="leave")
    assert (await discord.bot("GET", f"/guilds/{BASE}")).status_code == 200, "ours stays"


async def test_what_happens_in_one_guild_pushes_nothing_out_of_anothers_audit_log(
    discord: Outside, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sandbox.discord.world.world.AUDIT_KEPT", 2)
    await discord.control("guilds", guild=BASE, action="edit_role", role="HoldfastBot", permissions=str(1 << 7))
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Holder")
    for action in ("add_role", "remove_role", "add_role"):
        await discord.control("members", guild=CLUB, user="carol", action=action, role="Holder")
    log = (await discord.bot("GET", f"/guilds/{BASE}/audit-logs")).json()["audit_log_entries"]
    assert [entry["action_type"] for entry in log] == [25, 31]
    await discord.control("members", guild=BASE, user="carol", action="remove_role", role="Holder")
    log = (await discord.bot("GET", f"/guilds/{BASE}/audit-logs")).json()["audit_log_entries"]
    assert [entry["changes"][0]["key"] for entry in log] == ["$remove", "$add"]


async def test_patching_roles_sets_the_whole_set_and_guards_each_difference(discord: Outside):
    wanted = [role_of(BASE, HOLDER), int(role_of(BASE, COLLECTOR))]
    answer = await discord.bot("PATCH", f"/guilds/{BASE}/members/{CAROL}", {"roles": wanted})
    assert sorted(answer.json()["roles"]) == [role_of(BASE, HOLDER), role_of(BASE, COLLECTOR)]
    refused = await discord.bot("PATCH", f"/guilds/{BASE}/members/{ADA}", {"roles": []})
    assert refused.json()["code"] == 50013


async def test_commands_are_upserted_by_name(discord: Outside):
    base = f"/applications/{discord.settings['DISCORD_CLIENT_ID']}/commands"
    verify = {"name": "verify", "description": "Prove a wallet"}
    first, second = await discord.bot("POST", base, verify), await discord.bot("POST", base, verify)
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]
    assert [c["name"] for c in (await discord.bot("GET", base)).json()] == ["verify"]
    assert (await discord.bot("PUT", base, [])).json() == []
    assert (await discord.bot("POST", base, {"name": "No!", "description": "x"})).json()["code"] == 50035


async def test_a_channel_message_is_checked_and_kept(discord: Outside):
    made = await discord.bot("POST", f"/guilds/{BASE}/channels", {"name": "Verify Here", "type": 0})
    channel = made.json()["id"]
    assert (made.status_code, made.json()["name"]) == (201, "verify-here")
    button = {"type": 2, "style": 1, "label": "Verify", "custom_id": "verify"}
    body = {"content": "Hello", "components": [{"type": 1, "components": [button]}]}
    posted = await discord.bot("POST", f"/channels/{channel}/messages", body)
    assert posted.json()["components"][0]["components"][0]["custom_id"] == "verify"
    assert (await discord.bot("POST", f"/channels/{channel}/messages", {"content": ""})).json()["code"] == 50006
    too_long = await discord.bot("POST", f"/channels/{channel}/messages", {"content": "x" * 2001})
    assert too_long.json()["errors"]["content"]["_errors"][0]["message"] == "Must be 2000 or fewer in length."
    listed = (await discord.bot("GET", f"/channels/{channel}/messages")).json()
    assert [message["content"] for message in listed] == ["Hello"]


async def test_a_new_voice_channel_has_what_clients_need_of_one(discord: Outside):
    path = f"/guilds/{BASE}/channels"
    plain = (await discord.bot("POST", path, {"name": "Lounge", "type": 2})).json()
    assert (plain["bitrate"], plain["user_limit"], plain["rtc_region"]) == (64_000, 0, None)
    small = (await discord.bot("POST", path, {"name": "Booth", "type": 2, "user_limit": 2})).json()
    assert small["user_limit"] == 2
    assert (await discord.bot("PATCH", f"/channels/{small['id']}", {"user_limit": 0})).json()["user_limit"] == 0
    assert "bitrate" not in (await discord.bot("POST", path, {"name": "words", "type": 0})).json()


async def test_a_reply_names_the_message_that_it_answers(discord: Outside):
    path = f"/channels/{int(BASE) + 100}/messages"
    first = (await discord.bot("POST", path, {"content": "Who holds?"})).json()
    reply = {"content": "I do", "message_reference": {"message_id": first["id"]}}
    posted = (await discord.bot("POST", path, reply)).json()
    assert (posted["type"], posted["message_reference"]["message_id"]) == (19, first["id"])
    assert posted["referenced_message"]["content"] == "Who holds?"
    await discord.bot("DELETE", f"{path}/{first['id']}")
    assert (await discord.bot("GET", f"{path}/{posted['id']}")).json()["referenced_message"] is None
    refused = await discord.bot("POST", path, reply)
    assert (refused.status_code, "message_reference" in refused.json()["errors"]) == (400, True)
    reply["message_reference"]["fail_if_not_exists"] = False
    assert (await discord.bot("POST", path, reply)).json()["type"] == 0


async def test_a_message_calls_whom_its_allowed_mentions_let_it(discord: Outside):
    path, text = f"/channels/{int(BASE) + 100}/messages", f"<@{CAROL}> and <@{BOB}>"
    called: list[list[str]] = []
    for allowed in ({}, {"allowed_mentions": {"parse": []}}, {"allowed_mentions": {"parse": [], "users": [BOB]}}):
        answer = await discord.bot("POST", path, {"content": text, **allowed})
        called.append([user["username"] for user in answer.json()["mentions"]])
    assert called == [["carol", "bob"], [], ["bob"]]


@pytest.mark.parametrize(("kind", "status"), [("429", 429), ("500", 500), ("empty", 200), ("malformed", 200)])
async def test_faults_speak_in_discords_manner_until_they_are_cleared(discord: Outside, kind: str, status: int):
    await discord.control("faults", target="discord", kind=kind, seconds=60)
    answer = await discord.http.get("/discord/api/v10/users/@me")
    assert answer.status_code == status
    assert answer.headers["via"] == "1.1 google"
    await discord.http.delete("/control/faults")
    assert (await discord.bot("GET", "/users/@me")).status_code == 200


async def test_every_request_is_in_the_log_without_tokens(discord: Outside):
    before = (await discord.http.get("/control/requests")).json()["next"]
    await discord.bot("GET", "/users/@me")
    await discord.http.post("/discord/api/v10/interactions/1/secret-token/callback", json={"type": 4})
    seen = (await discord.http.get("/control/requests", params={"since": before})).json()
    assert [(r["target"], r["method"], r["status"]) for r in seen["requests"]] == [
        ("discord", "GET", 200),
        ("discord", "POST", 404),
    ]
    assert "secret-token" not in str(seen)


async def test_pictures_are_drawn_for_known_hashes_only(discord: Outside):
    icon = (await discord.bot("GET", "/users/@me/guilds")).json()[0]["icon"]
    assert icon is None
    avatar = (await discord.bot("GET", f"/users/{ADA}")).json()["avatar"]
    image = await discord.http.get(f"/discord/cdn/avatars/{ADA}/{avatar}.png", params={"size": 128})
    assert image.headers["content-type"] == "image/png"
    assert image.content.startswith(b"\x89PNG")
    assert (await discord.http.get(f"/discord/cdn/avatars/{ADA}/{'0' * 32}.png")).status_code == 404
    assert (await discord.http.get("/discord/cdn/embed/avatars/3.png")).status_code == 200


@pytest.mark.parametrize(
    ("place", "limit", "shown"), [(2, 3, "321"), (2, 4, "4321"), (4, 2, "43"), (0, 50, "43210"), (3, 1, "3")]
)
async def test_messages_around_one_are_half_newer_and_half_older(discord: Outside, place: int, limit: int, shown: str):
    path = f"/channels/{int(BASE) + 100}/messages"
    posted = [(await discord.bot("POST", path, {"content": str(number)})).json()["id"] for number in range(5)]
    found = (await discord.bot("GET", f"{path}?limit={limit}&around={posted[place]}")).json()
    assert "".join(message["content"] for message in found if message["id"] in posted) == shown


async def test_an_audit_reason_has_at_most_512_characters(discord: Outside):
    path = f"/guilds/{BASE}/members/{CAROL}/roles/{role_of(BASE, HOLDER)}"
    right = await discord.bot("PUT", path, headers={"X-Audit-Log-Reason": "%E2%9C%93" * 512})
    wrong = await discord.bot("PUT", path, headers={"X-Audit-Log-Reason": "x" * 513})
    assert (right.status_code, wrong.status_code, wrong.json()["code"]) == (204, 400, 50035)


async def test_a_deleted_role_is_told_once_and_not_for_each_holder(discord: Outside):
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Holder")
    async with ready(discord) as (client, _):
        await discord.bot("DELETE", f"/guilds/{BASE}/roles/{role_of(BASE, HOLDER)}")
        await discord.control("gateway", action="send", event="MARK", payload={})
        told: list[str] = []
        while (event := (await client.frame())["t"]) != "MARK":
            told.append(event)
    assert [event for event in told if event != "GUILD_CREATE"] == ["GUILD_ROLE_DELETE"]
    assert (await discord.member(BASE, "carol"))["roles"] == []


async def test_other_versions_of_the_path_answer_too(discord: Outside):
    headers = {"Authorization": f"Bot {discord.settings['DISCORD_BOT_TOKEN']}"}
    for version in ("/v9", "/v10", ""):
        answer = await discord.http.get(f"/discord/api{version}/guilds/{BASE}", headers=headers)
        assert answer.json()["id"] == BASE
    assert (await discord.http.get("/discord/api/v5/users/@me", headers=headers)).status_code == 404


async def test_a_request_that_says_not_what_sends_it_is_blocked(discord: Outside):
    answer = await discord.bot("GET", "/users/@me", headers={"User-Agent": ""})
    assert (answer.status_code, answer.json()["code"]) == (403, 40333)


async def test_messages_and_renames_are_slow_where_the_sandbox_is_strict(discord: Outside):
    discord.sandbox.be_strict(False)
    usual = (await discord.http.get("/control/limits")).json()["discord"]
    discord.sandbox.be_strict(True)
    told = (await discord.http.get("/control/limits")).json()["discord"]
    assert told["messages_of_a_channel"] == {"requests": 5, "seconds": 5.0}
    assert set(told) - set(usual) == {"messages_of_a_channel", "renames_of_a_channel"}
    renamed = [(await discord.bot("PATCH", GENERAL, {"name": f"n{n}"})) for n in range(3)]
    assert [answer.status_code for answer in renamed] == [200, 200, 429]
    assert 500 < renamed[-1].json()["retry_after"] <= 600
    assert (await discord.bot("PATCH", GENERAL, {"nsfw": False})).status_code == 200
    posted = [(await discord.bot("POST", f"{GENERAL}/messages", {"content": "x"})) for _ in range(6)]
    assert [answer.status_code for answer in posted] == [200] * 5 + [429]
    assert posted[0].headers["X-RateLimit-Limit"] == "5"
    assert 0 < posted[-1].json()["retry_after"] <= 5
