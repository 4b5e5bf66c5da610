"""The console: each person's view of Discord, what they do to the bot, and tools for the rest of the world."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import ClientSession, test_utils, web

from sandbox.console import Console
from tests.sandbox.conftest import BASE, CLUB, Outside, role_of

EVIL = '<img src=x onerror="alert(1)">'
SCRIPT = {"Accept": "application/json"}


async def page(discord: Outside, **where: str) -> str:
    answer = await discord.http.get("/console", params=where)
    assert answer.status_code == 200
    return answer.text


async def parts(discord: Outside, **where: str) -> dict[str, str]:
    return (await discord.http.get("/console/live", params=where)).json()["parts"]


async def post(discord: Outside, path: str, /, **form: str) -> dict[str, Any]:
    """Make a call of the console's script and return the answer."""
    return (await discord.http.post(f"/console/{path}", data=form, headers=SCRIPT)).json()


@asynccontextmanager
async def answering(discord: Outside, *answers: dict[str, Any]) -> AsyncIterator[list[dict[str, Any]]]:
    """A bot at the gateway that answers interactions with these callbacks in turn; yields the interactions it got."""
    heard: list[dict[str, Any]] = []
    async with ClientSession() as http, http.ws_connect(f"{discord.sandbox.url}/discord/gateway/?v=10") as socket:
        token = discord.settings["DISCORD_BOT_TOKEN"]
        await socket.receive_json()
        await socket.send_json({"op": 2, "d": {"token": token, "intents": 3, "properties": {}}})
        while (await socket.receive_json())["t"] != "READY":
            pass

        async def serve() -> None:
            waiting = list(answers)
            async for message in socket:
                event = json.loads(message.data)
                if event["t"] != "INTERACTION_CREATE":
                    continue
                heard.append(event["d"])
                path = f"/interactions/{event['d']['id']}/{event['d']['token']}/callback"
                await discord.bot("POST", path, waiting.pop(0))

        task = asyncio.create_task(serve())
        yield heard
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def commands(discord: Outside, *definitions: dict[str, Any]) -> None:
    for definition in definitions:
        done = await discord.bot("POST", f"/applications/{discord.settings['DISCORD_CLIENT_ID']}/commands", definition)
        assert done.status_code in (200, 201), done.text


async def test_each_person_sees_their_servers_and_the_members_with_their_roles(discord: Outside):
    carol = await page(discord, **{"as": "carol"}, guild=BASE)
    for shown in ("Base Builders", "Cool Holders Club", "Quiet Corner", 'data-member="mallory"', "# </span>general"):
        assert shown in carol
    assert "Quiet Corner" not in re.sub(r"<main.*", "", await page(discord, **{"as": "dave"}))
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Whale")
    renewed = (await parts(discord, **{"as": "dave"}, guild=BASE))["members"]
    mine = renewed[renewed.index('data-member="carol"') :]
    assert "--role:#9b59b6" in mine[: mine.index("</li>")]


async def test_what_has_not_changed_is_not_sent_again(discord: Outside):
    first = (await discord.http.get("/console/live", params={"as": "carol"})).json()
    again = await discord.http.get("/console/live", params={"as": "carol", "seen": first["version"]})
    assert again.status_code == 204


async def test_commands_are_offered_as_discord_offers_them_and_their_options_arrive(discord: Outside):
    await commands(
        discord,
        {"name": "setup", "description": "Make the channel", "default_member_permissions": str(1 << 5)},
        {
            "name": "ask", "description": "Ask about something",
            "options": [
                {"type": 3, "name": "word", "description": "A word", "autocomplete": True, "required": True},
                {"type": 8, "name": "role", "description": "A role"},
                {"type": 4, "name": "size", "description": "One of", "choices": [{"name": "big", "value": 2}]},
                {"type": 5, "name": "loud", "description": "Or not"},
            ],
        },
    )  # fmt: skip
    assert 'data-command="setup"' in await page(discord, **{"as": "ada"}, guild=BASE)
    offered = await page(discord, **{"as": "carol"}, guild=BASE)
    assert 'data-command="ask"' in offered
    assert 'data-command="setup"' not in offered
    where = {"as": "carol", "guild": BASE, "name": "ask", "back": f"/console?as=carol&guild={BASE}"}
    chosen = {"option.word": "wa", "option.role": role_of(BASE, 1), "option.size": "2", "option.loud": "false"}
    choices = {"type": 8, "data": {"choices": [{"name": "wallet", "value": "w1"}]}}
    secret = {"type": 4, "data": {"content": "It is **concealed**", "flags": 64}}
    async with answering(discord, choices, secret) as heard:
        completed = await post(discord, "complete", **where, **{"option.word": "wa", "focused": "word"})
        assert completed["choices"] == [{"name": "wallet", "value": "w1"}]
        assert await post(discord, "act", kind="command", **where, **chosen) == {"ok": True, "said": "", "modal": ""}
    given = {one["name"]: one["value"] for one in heard[1]["data"]["options"]}
    assert given == {"word": "wa", "role": role_of(BASE, 1), "size": 2, "loud": False}
    assert heard[1]["member"]["user"]["username"] == "carol"
    mine = (await parts(discord, **{"as": "carol"}, guild=BASE))["messages"]
    assert "It is <strong>concealed</strong>" in mine
    assert "Only you can see this" in mine
    assert "concealed" not in (await parts(discord, **{"as": "dave"}, guild=BASE))["messages"]
    message = re.search(r'name="message" value="(\d+)"', mine)
    assert message
    await post(discord, "dismiss", message=message[1], back=where["back"])
    assert "concealed" not in (await parts(discord, **{"as": "carol"}, guild=BASE))["messages"]


async def test_a_panel_a_modal_and_its_answer_work_without_script(discord: Outside):
    rows = [{"type": 1, "components": [{"type": 2, "style": 1, "label": "Verify", "custom_id": "go"}]}]
    channel = str(int(BASE) + 100)
    posted = await discord.bot("POST", f"/channels/{channel}/messages", {"content": "Panel", "components": rows})
    asked = {
        "custom_id": "claim", "title": "Your wallet",
        "components": [
            {"type": 18, "label": "Address", "description": "Yours",
             "component": {"type": 4, "custom_id": "address", "style": 1}},
            {"type": 18, "label": "How", "component": {
                "type": 3, "custom_id": "how", "options": [{"label": "Bio", "value": "bio"}]}},
        ],
    }  # fmt: skip
    form = {"as": "carol", "guild": BASE, "back": f"/console?as=carol&guild={BASE}"}
    async with answering(discord, {"type": 9, "data": asked}, {"type": 4, "data": {"content": "Got it"}}) as heard:
        button = {"kind": "button", "custom_id": "go", "message_id": posted.json()["id"]}
        opened = await discord.http.post("/console/act", data={**form, **button})
        assert opened.status_code == 303
        shown = (await discord.http.get(opened.headers["location"])).text
        assert '<dialog open aria-labelledby="modal-title">' in shown
        assert "Your wallet" in shown
        filled = {"kind": "modal", "custom_id": "claim", "field.address": "0xabc", "field.how": "bio"}
        done = await discord.http.post("/console/act", data={**form, **filled})
        assert "modal" not in parse_qs(urlsplit(done.headers["location"]).query)
    values = [row["component"].get("value") or row["component"]["values"] for row in heard[1]["data"]["components"]]
    assert values == ["0xabc", ["bio"]]
    assert "Got it" in await page(discord, **{"as": "dave"}, guild=BASE)


async def test_only_answers_that_somebody_still_sees_are_remembered_as_dismissed(discord: Outside):
    await commands(discord, {"name": "ask", "description": "Ask"})
    console = Console(discord.sandbox)
    app = web.Application()
    app.router.add_post("/console/dismiss", console.dismiss)
    secret = {"type": 4, "data": {"content": "A secret", "flags": 64}}
    async with answering(discord, secret, secret), test_utils.TestClient(test_utils.TestServer(app)) as client:

        async def dismiss(message: str) -> None:
            answer = await client.post("/console/dismiss", data={"message": message}, allow_redirects=False)
            assert answer.status == 303

        seen: list[str] = []
        for _ in range(2):
            use = {"guild": BASE, "user": "carol", "kind": "command", "name": "ask"}
            seen.append((await discord.control("interactions", **use))["messages"][0]["id"])
            for message in ("1", "x" * 5_000, seen[-1]):
                await dismiss(message)
        assert console.dismissed == set(seen)
        await discord.control("reset")
        await dismiss("1")
        assert console.dismissed == set()


async def test_boxes_of_a_modal_are_ticked_in_a_form(discord: Outside):
    row = {"type": 1, "components": [{"type": 2, "style": 1, "label": "Go", "custom_id": "go"}]}
    posted = await discord.bot(
        "POST", f"/channels/{int(BASE) + 100}/messages", {"content": "Panel", "components": [row]}
    )
    ticked = [{"label": value.upper(), "value": value, "default": value == "b"} for value in "ab"]
    asked = {
        "custom_id": "boxes", "title": "Boxes",
        "components": [
            {"type": 18, "label": "One", "component": {"type": 21, "custom_id": "one", "options": ticked}},
            {"type": 18, "label": "Some", "component": {
                "type": 22, "custom_id": "some", "options": ticked, "required": False}},
            {"type": 18, "label": "Yes", "component": {"type": 23, "custom_id": "yes", "default": True}},
        ],
    }  # fmt: skip
    form = {"as": "carol", "guild": BASE, "back": f"/console?as=carol&guild={BASE}"}
    async with answering(discord, {"type": 9, "data": asked}, {"type": 4, "data": {"content": "Got it"}}) as heard:
        opened = await post(
            discord, "act", kind="button", custom_id="go", message_id=posted.json()["id"], **form
        )  # fmt: skip
        boxes = re.findall(r'<input type="(\w+)" name="field\.(\w+)" value="(\w+)"( checked)?', opened["modal"])
        assert [(kind, name, value, bool(on)) for kind, name, value, on in boxes] == [
            ("radio", "one", "a", False), ("radio", "one", "b", True),
            ("checkbox", "some", "a", False), ("checkbox", "some", "b", True), ("checkbox", "yes", "true", True),
        ]  # fmt: skip
        offered = re.findall(r'name="offered" value="(\w+)"', opened["modal"])
        filled = {"kind": "modal", "custom_id": "boxes", "offered": offered, "field.one": "a"}
        done = await discord.http.post("/console/act", data={**form, **filled}, headers=SCRIPT)
        assert done.json()["ok"], done.text
    values = [row["component"].get("value", row["component"].get("values")) for row in heard[1]["data"]["components"]]
    assert values == ["a", [], False], "browsers send nothing for a box that is not ticked"


async def test_people_write_messages_where_they_may_and_are_called_by_name(discord: Outside):
    form = {"as": "carol", "guild": BASE, "channel": "general", "back": f"/console?as=carol&guild={BASE}"}
    assert (await post(discord, "say", typed="Hi **@dave**, who is @nobody?", **form))["ok"]
    shown = (await parts(discord, **{"as": "dave"}, guild=BASE))["messages"]
    assert 'Hi <strong><span class="mention">@Dave</span></strong>, who is @nobody?' in shown
    assert "Only you can see this" not in shown
    made = await discord.bot("POST", f"/guilds/{BASE}/channels", {
        "name": "news", "permission_overwrites": [{"id": BASE, "type": 0, "deny": str(1 << 11)}],
    })  # fmt: skip
    refused = await post(discord, "say", **{**form, "channel": made.json()["id"], "typed": "Hello?"})
    assert (refused["ok"], refused["said"]) == (False, "You do not have permission to send messages in #news.")
    assert "You may not write in #news" in await page(discord, **{"as": "carol"}, guild=BASE, channel="news")
    too_long = await post(discord, "say", typed="x" * 2001, **form)
    assert too_long["said"] == "A message has 1 to 2000 characters."
    without_script = await discord.http.post("/console/say", data={**form, "typed": "/he"})
    assert without_script.headers["location"].endswith("typed=/he")


async def test_a_member_is_called_by_the_nickname_and_otherwise_by_the_name_that_is_shown(discord: Outside):
    form = {"as": "dave", "guild": BASE, "channel": "general", "back": f"/console?as=dave&guild={BASE}"}
    await discord.control("members", guild=BASE, user="dave", action="rename_nick", name="Captain")
    assert (await post(discord, "say", typed="I am @dave and she is @carol", **form))["ok"]
    shown = (await parts(discord, **{"as": "carol"}, guild=BASE))["messages"]
    assert 'I am <span class="mention">@Captain</span>' in shown
    assert 'she is <span class="mention">@Carol</span>' in shown
    assert re.search(r'<strong[^>]*class="name"[^>]*>Captain</strong>', shown)


async def test_times_are_written_as_discord_writes_them_without_a_zero_before_the_day(discord: Outside):
    form = {"as": "carol", "guild": BASE, "channel": "general", "back": f"/console?as=carol&guild={BASE}"}
    moment = int(datetime(2026, 4, 7, 9, 5, tzinfo=UTC).timestamp())
    written = {
        "d": "07/04/2026", "D": "7 April 2026", "f": "7 April 2026 09:05", "F": "Tuesday, 7 April 2026 09:05",
        "t": "09:05", "T": "09:05:00",
    }  # fmt: skip
    assert (await post(discord, "say", typed=" ".join(f"<t:{moment}:{style}>" for style in written), **form))["ok"]
    shown = (await parts(discord, **{"as": "dave"}, guild=BASE))["messages"]
    assert re.findall(r'title="7 April 2026 09:05 UTC">([^<]+)</time>', shown) == list(written.values())


async def test_who_is_offered_a_command_is_for_a_servers_admins_to_say(discord: Outside):
    await commands(discord, {"name": "setup", "description": "x", "default_member_permissions": str(1 << 5)})
    for to, allowed, seen in (("carol", "true", True), ("carol", "false", False)):
        done = await post(
            discord, "do/guilds", guild=BASE, action="offer_command", name="setup", to=to, allowed=allowed
        )
        assert done["ok"], done
        assert ('data-command="setup"' in await page(discord, **{"as": "carol"}, guild=BASE)) is seen
    await post(discord, "do/guilds", guild=BASE, action="offer_command", name="setup", to="@everyone", allowed="true")
    assert 'data-command="setup"' in await page(discord, **{"as": "dave"}, guild=BASE)
    await discord.control("reset")
    assert 'data-command="setup"' not in await page(discord, **{"as": "dave"}, guild=BASE)


async def test_what_the_bot_does_not_answer_and_what_discord_does_not_offer_is_said(discord: Outside):
    await commands(discord, {"name": "quiet", "description": "Say nothing"})
    form = {"as": "carol", "guild": BASE, "kind": "command", "name": "quiet"}
    told = await post(discord, "act", **form)
    assert (told["ok"], told["said"]) == (False, "No bot is connected to the gateway.")
    told = await post(discord, "act", **{**form, "guild": CLUB})
    assert told["said"] == "The bot is not in Cool Holders Club."


async def test_the_words_of_others_are_never_markup(discord: Outside):
    row = {"type": 1, "components": [{"type": 2, "style": 1, "label": EVIL[:80], "custom_id": EVIL}]}
    await discord.control("members", guild=BASE, user="carol", action="rename", name=EVIL)
    role = await discord.control("guilds", guild=BASE, action="add_role", name=EVIL)
    await discord.control("members", guild=BASE, user="dave", action="add_role", role=role["id"])
    body = {
        "content": f"{EVIL} **{EVIL}** `{EVIL}` ```{EVIL}``` [x](javascript:alert(1)) <@&{role['id']}>",
        "embeds": [{"title": EVIL, "description": EVIL, "fields": [{"name": EVIL, "value": EVIL}],
                    "footer": {"text": EVIL}, "author": {"name": EVIL}}],
        "components": [row],
    }  # fmt: skip
    posted = await discord.bot("POST", f"/channels/{int(BASE) + 100}/messages", body)
    assert posted.status_code == 200, posted.text
    await commands(discord, {"name": "evil", "description": EVIL})
    for panel in ("", "servers", "chains", "profiles", "faults"):
        shown = await page(discord, **{"as": "ada", "said": EVIL, "typed": EVIL}, guild=BASE, panel=panel, at=EVIL)
        assert "<img src=x" not in shown
        assert 'href="javascript' not in shown
        assert EVIL in unescape(shown)
    answer = await discord.http.get("/console", params={"as": EVIL, "guild": EVIL, "channel": EVIL, "modal": EVIL})
    assert "<img src=x" not in answer.text
    assert "script-src 'self';" in answer.headers["content-security-policy"]


async def test_a_tool_does_what_control_does_and_shows_the_result(discord: Outside):
    back = f"/console?as=ada&guild={BASE}&panel=servers"
    form = {"guild": BASE, "user": "carol", "action": "add_role", "role": "Whale", "back": back}
    done = await discord.http.post("/console/do/members", data=form)
    assert (done.status_code, "said=Done." in done.headers["location"]) == (303, True)
    assert "panel=servers" in done.headers["location"]
    assert len((await discord.member(BASE, "carol"))["roles"]) == 1
    live = (await parts(discord, **{"as": "ada"}, panel="servers", at=BASE))["panel-now"]
    assert "gave the role Whale" in live
    screened = await post(discord, "do/members", guild=BASE, user="carol", action="set_pending", pending="true")
    assert screened["said"] == "Done."
    assert (await discord.member(BASE, "carol"))["pending"] is True
    moved = await post(discord, "do/guilds", guild=BASE, action="move_role", role="Whale", position="1")
    assert moved["ok"]
    kicked = await post(discord, "do/guilds", guild=BASE, action="kick_bot")
    assert kicked["ok"]
    assert (await discord.guild(BASE))["bot_added"] is False
    refused = await post(discord, "do/guilds", guild="Nowhere", action="add_bot")
    assert (refused["ok"], refused["said"]) == (False, "There is no guild 'Nowhere'.")


async def test_faults_begin_end_and_are_told_everywhere(discord: Outside):
    await post(discord, "do/faults", target="opensea", kind="500", seconds="60")
    assert "opensea: 500" in (await parts(discord, **{"as": "ada"}))["faults-now"]
    await post(discord, "do/faults")
    assert "No fault is running" in (await parts(discord, **{"as": "ada"}))["faults-now"]


async def test_an_answer_at_will_and_a_slow_route_are_set_told_and_ended(discord: Outside):
    body = '{"message": "Unknown Guild", "code": 10004}'
    path = {"path": f"/guilds/{BASE}", "method": "GET"}
    set_ = await post(discord, "do/faults", target="discord", kind="answer", **path, status="404", body=body, times="1")
    assert set_["ok"], set_
    await post(discord, "do/faults", target="opensea", kind="latency", ms="5", seconds="60")
    now = (await parts(discord, **{"as": "ada"}))["faults-now"]
    assert f"discord GET /guilds/{BASE}: answers 404, 1 times" in now
    assert "opensea any *: 5 ms later, " in now
    refused = await discord.bot("GET", f"/guilds/{BASE}")
    assert (refused.status_code, refused.json()["code"]) == (404, 10004)
    assert (await discord.bot("GET", f"/guilds/{BASE}")).status_code == 200
    await post(discord, "do/faults")
    assert "No fault is running" in (await parts(discord, **{"as": "ada"}))["faults-now"]


class Forms(HTMLParser):
    """The forms of a page by their button's text: the action of each, and its fields with their values."""

    def __init__(self, shown: str) -> None:
        super().__init__()
        self.found: dict[str, tuple[str, dict[str, str]]] = {}
        self._form: tuple[str, dict[str, str]] = ("", {})
        self._select = ""
        self._in_button = False
        self.feed(shown)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = (given["action"].removeprefix("/console/"), {})
        elif tag == "input" and given.get("name") != "back":
            self._form[1][given.get("name", "")] = given.get("value", "")
        elif tag == "select":
            self._select = given["name"]
        elif tag == "option" and self._select:
            self._form[1].setdefault(self._select, given.get("value", ""))
        self._in_button = tag == "button"

    def handle_endtag(self, tag: str) -> None:
        self._select = "" if tag == "select" else self._select

    def handle_data(self, data: str) -> None:
        if self._in_button:
            self.found[data] = self._form
            self._in_button = False


@pytest.mark.parametrize(
    ("panel", "buttons", "filled"),
    [
        ("faults", ["Answer", "Slow down", "Close", "Disturb events", "Set the intent"], {}),
        ("faults", ["Set the limit", "Renew the limits", "Take it out", "Bring it back"], {"guild": BASE}),
        ("servers", ["Change server", "Rename", "Make", "Make a server"], {"username": "zoe", "name": "Another name"}),
    ],
)
async def test_each_newer_tool_does_its_deed_as_its_form_stands(
    discord: Outside, panel: str, buttons: list[str], filled: dict[str, str]
):
    forms = Forms(await page(discord, **{"as": "ada"}, panel=panel, at=BASE)).found
    for button in buttons:
        path, fields = forms[button]
        more = {name: value for name, value in filled.items() if name in fields}
        if button == "Make a server":
            more["guild"] = "A new place"
        done = await post(discord, path, **{**fields, **more})
        assert (done["ok"], done["said"]) == (True, "Done."), button


@pytest.mark.parametrize("text", ["[" * 4000, '{"a": 1e400}', "[NaN]", '["\\ud800"]'])
async def test_an_answer_at_will_that_is_no_json_is_text(discord: Outside, text: str):
    told = await post(discord, "do/faults", target="discord", kind="answer", status="200", body=text)
    assert told["ok"], told["said"]
    assert (await discord.http.get("/discord/api/v10/gateway")).text == text


async def test_limits_are_shown_set_and_renewed(discord: Outside):
    set_ = await post(discord, "do/limits", target="discord", left="7", seconds="60")
    assert set_["ok"], set_
    assert "7 of 10,000 left" in (await parts(discord, **{"as": "ada"}, panel="faults"))["panel-now"]
    assert (await post(discord, "do/limits"))["ok"]
    assert "10,000 of 10,000 left" in (await parts(discord, **{"as": "ada"}, panel="faults"))["panel-now"]


async def test_looking_at_it_reaches_no_provider(discord: Outside):
    before = discord.sandbox.traffic.since(0)["next"]
    shown = await page(discord, **{"as": "ada"}, guild=CLUB)
    pictures = re.findall(r'src="(/console/pictures/[^"]+)"', shown)
    assert pictures
    for picture in pictures:
        assert (await discord.http.get(picture)).headers["content-type"] == "image/png"
    assert discord.sandbox.traffic.since(0)["next"] == before


@pytest.mark.parametrize(("headers", "status"), [({"Sec-Fetch-Site": "cross-site"}, 403), ({"Host": "evil.test"}, 421)])
async def test_another_site_may_not_steer_it(discord: Outside, headers: dict[str, str], status: int):
    answer = await discord.http.post("/console/do/reset", data={}, headers=headers)
    assert answer.status_code == status


async def test_a_browser_that_asks_for_an_icon_gets_one(discord: Outside):
    answer = await discord.http.get("/favicon.ico")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml; charset=utf-8")
