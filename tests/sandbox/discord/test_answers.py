"""Discord's refusals of answers to interactions: modals, an autocomplete's choices, and invalid answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from sandbox.discord.interactions.interactions import COMPONENT, DEFERRED_UPDATE, Interaction
from sandbox.discord.world.entities import Message
from tests.sandbox.conftest import BASE, Outside
from tests.sandbox.discord.gateway.test_gateway import Client, ready

APP, CAROL, GENERAL = "1160000000000000001", "1150000000000000303", str(int(BASE) + 100)
LONG = "x" * 101


@dataclass
class Used:
    """A command in use: its event, and the bot's ways to answer it."""

    discord: Outside
    event: dict[str, Any]

    async def answer(self, body: Any, **params: str) -> httpx.Response:
        return await self.discord.bot(
            "POST", f"/interactions/{self.event['id']}/{self.event['token']}/callback", body, params=params
        )

    @property
    def webhook(self) -> str:
        return f"/webhooks/{APP}/{self.event['token']}"


@asynccontextmanager
async def used(discord: Outside, kind: str = "command", option_type: int = 3) -> AsyncIterator[Used]:
    """carol uses /go, or types into its option."""
    options = [{"type": option_type, "name": "word", "description": "A word", "autocomplete": True}]
    await discord.bot("POST", f"/applications/{APP}/commands", {"name": "go", "description": "Go", "options": options})
    async with ready(discord) as (client, _):
        value = "1" if option_type == 4 else "a"
        body = {"guild": BASE, "user": "carol", "kind": kind, "name": "go", "options": {"word": value}}
        doing = asyncio.create_task(discord.http.post("/control/interactions", json=body))
        event = await client.until("INTERACTION_CREATE")
        yield Used(discord, event["d"])
        doing.cancel()


def text_input(**more: Any) -> dict[str, Any]:
    return {"type": 4, "custom_id": "word", "style": 1, **more}


def label(component: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": 18, "label": "Word", "component": component or text_input(), **more}


def select(*values: str, **more: Any) -> dict[str, Any]:
    options = [{"label": "A", "value": value} for value in values]
    return {"type": 3, "custom_id": "menu", "options": options, **more}


def modal(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"custom_id": "form", "title": "Form", "components": list(rows), **more}


PART = "components.0.component"
MODALS: dict[str, tuple[dict[str, Any], str]] = {
    "no components": (modal(), "components"),
    "six rows": (modal(*[label(text_input(custom_id=str(n))) for n in range(6)]), "components"),
    "title over 45": (modal(label(), title="x" * 46), "title"),
    "no title": (modal(label(), title=""), "title"),
    "custom_id over 100": (modal(label(), custom_id=LONG), "custom_id"),
    "label over 45": (modal(label(label="x" * 46)), "components.0.label"),
    "label's description over 100": (modal(label(description=LONG)), "components.0.description"),
    "placeholder over 100": (modal(label(text_input(placeholder=LONG))), f"{PART}.placeholder"),
    "min over max": (modal(label(text_input(min_length=5, max_length=4))), f"{PART}.min_length"),
    "max_length over 4000": (modal(label(text_input(max_length=4001))), f"{PART}.max_length"),
    "value over 4000": (modal(label(text_input(value="x" * 4001))), f"{PART}.value"),
    "duplicate custom_ids": (modal(label(), label()), "components.1.component.custom_id"),
    "style missing": (modal(label({"type": 4, "custom_id": "x"})), f"{PART}.style"),
    "style 7": (modal(label(text_input(style=7))), f"{PART}.style"),
    "custom_id of the input missing": (modal(label({"type": 4, "style": 1})), f"{PART}.custom_id"),
    "input custom_id over 100": (modal(label(text_input(custom_id=LONG))), f"{PART}.custom_id"),
    "a button in a modal": (modal(label({"type": 2, "style": 1, "label": "x", "custom_id": "x"})), PART),
    "a button in a modal's row": (
        modal({"type": 1, "components": [{"type": 2, "style": 1, "label": "x", "custom_id": "x"}]}),
        "components.0.components.0",
    ),
    "select without options": (modal(label(select())), f"{PART}.options"),
    "select option label over 100": (
        modal(label({**select("a"), "options": [{"label": LONG, "value": "a"}]})),
        f"{PART}.options.0.label",
    ),
    "duplicate option values": (modal(label(select("a", "a"))), f"{PART}.options.1.value"),
    "a needed choice of nothing": (modal(label(select("a", min_values=0))), f"{PART}.min_values"),
    "a needed box of none": (
        modal(label({"type": 22, "custom_id": "x", "options": select("a")["options"], "min_values": 0})),
        f"{PART}.min_values",
    ),
    "a single radio button": (
        modal(label({"type": 21, "custom_id": "x", "options": select("a")["options"]})),
        f"{PART}.options",
    ),
    "label without component": (modal({"type": 18, "label": "x"}), "components.0.component"),
    "unknown part type 99": (modal({"type": 99}), "components.0"),
    "action row: label missing (old layout)": (
        modal({"type": 1, "components": [text_input()]}),
        "components.0.components.0.label",
    ),
    "action row: two inputs": (
        modal({"type": 1, "components": [text_input(label="a"), text_input(label="b", custom_id="b")]}),
        "components.0.components.1",
    ),
}


def place_of(answer: httpx.Response, path: str) -> Any:
    assert (answer.status_code, answer.json()["code"]) == (400, 50035), answer.text
    node = answer.json()["errors"]
    for part in ("data", *path.split(".")):
        assert part in node, answer.text
        node = node[part]
    return node["_errors"]


async def test_a_modal_that_discord_refuses(discord: Outside):
    async with used(discord) as use:
        for case, (body, path) in MODALS.items():
            assert place_of(await use.answer({"type": 9, "data": body}), path), case
        right = modal(
            label(text_input(value=None, placeholder=None, max_length=40)),
            label(select("a", "b"), description="Which"),
            label(select("c", custom_id="any", required=False, min_values=0)),
            {"type": 1, "components": [text_input(custom_id="old", label="Old")]}, {"type": 10, "content": "Words"},
        )  # fmt: skip
        assert (await use.answer({"type": 9, "data": right})).status_code == 204


CHOICES: dict[str, tuple[Any, str]] = {
    "choice name over 100": ([{"name": LONG, "value": "a"}], "choices.0.name"),
    "choice value over 100": ([{"name": "a", "value": LONG}], "choices.0.value"),
    "choice name empty": ([{"name": "", "value": "a"}], "choices.0.name"),
    "choice without value": ([{"name": "a"}], "choices.0.value"),
    "number for a text option": ([{"name": "a", "value": 5}], "choices.0.value"),
    "26 choices": ([{"name": "a", "value": "a"}] * 26, "choices"),
    "choices that are not a list": ("a", "choices"),
}


async def test_choices_that_discord_refuses(discord: Outside):
    async with used(discord, "autocomplete") as use:
        assert (await use.answer({"type": 8})).json()["errors"]["data"]
        for case, (choices, path) in CHOICES.items():
            assert place_of(await use.answer({"type": 8, "data": {"choices": choices}}), path), case
        assert (await use.answer({"type": 8, "data": {"choices": [{"name": "a", "value": "a"}]}})).status_code == 204


async def test_choices_have_the_type_of_the_option(discord: Outside):
    async with used(discord, "autocomplete", option_type=4) as use:
        wrong = await use.answer({"type": 8, "data": {"choices": [{"name": "a", "value": "a"}]}})
        assert place_of(wrong, "choices.0.value")
        assert (await use.answer({"type": 8, "data": {"choices": [{"name": "a", "value": 7}]}})).status_code == 204


@pytest.mark.parametrize("body", [{"type": 4, "data": "words"}, {"type": 4, "data": [1]}, {"type": 9, "data": 5}])
async def test_data_that_is_no_object_is_refused(discord: Outside, body: dict[str, Any]):
    async with used(discord) as use:
        answer = await use.answer(body)
        assert (answer.status_code, list(answer.json()["errors"])) == (400, ["data"])


async def test_a_message_that_discord_refuses_as_an_answer_too(discord: Outside):
    async with used(discord) as use:
        assert place_of(await use.answer({"type": 4, "data": {"content": "x" * 2001}}), "content")
        assert (await use.answer({"type": 4})).json()["code"] == 50006
        assert (await use.answer({"type": 5})).status_code == 204
        edit = await discord.bot("PATCH", f"{use.webhook}/messages/@original", {"embeds": [{"title": "x" * 257}]})
        assert edit.json()["errors"]["embeds"]["0"]["title"]


async def test_an_answer_mentions_the_users_it_names_and_its_webhook_describes_itself(discord: Outside):
    async with used(discord) as use:
        data = {"content": f"<@{CAROL}> @everyone"}
        told = (await use.answer({"type": 4, "data": data}, with_response="true")).json()["resource"]["message"]
        assert [user["username"] for user in told["mentions"]] == ["carol"]
        assert told["mention_everyone"] is False
        webhook = await discord.http.get(f"/discord/api/v10{use.webhook}")
        assert (webhook.json()["application_id"], webhook.json()["type"]) == (APP, 3)


ROW = {"type": 1, "components": [{"type": 2, "style": 1, "label": "Go", "custom_id": "go"}]}
PRESS = {"guild": BASE, "user": "carol", "kind": "button", "custom_id": "go", "wait": 0}


async def press(discord: Outside, client: Client) -> Used:
    """carol presses the newest button that she sees."""
    doing = asyncio.create_task(discord.http.post("/control/interactions", json=PRESS))
    event = await client.until("INTERACTION_CREATE")
    doing.cancel()
    return Used(discord, event["d"])


async def pressed(discord: Outside, client: Client) -> tuple[Used, str]:
    """carol presses the button of a message in the channel; return the press and the message's path."""
    message = (await discord.bot("POST", f"/channels/{GENERAL}/messages", {"components": [ROW]})).json()
    return await press(discord, client), f"/channels/{GENERAL}/messages/{message['id']}"


async def test_a_deleted_message_is_not_changed_by_the_press_of_its_button(discord: Outside):
    async with ready(discord) as (client, _):
        use, message = await pressed(discord, client)
        assert (await discord.bot("DELETE", message)).status_code == 204
        late = await use.answer({"type": 7, "data": {"content": "Changed"}})
        assert late.status_code == 404, late.text
        assert late.json()["code"] == 10008
        assert (await use.answer({"type": 6})).status_code == 204
        original = f"{use.webhook}/messages/@original"
        for method, body in (("PATCH", {"content": "Changed"}), ("GET", None), ("DELETE", None)):
            answer = await discord.bot(method, original, body)
            assert answer.status_code == 404, method
            assert answer.json()["code"] == 10008
        assert (await discord.bot("GET", message)).json()["code"] == 10008


@asynccontextmanager
async def pressed_in_private(discord: Outside) -> AsyncIterator[tuple[Used, Used]]:
    """A command answered with an ephemeral button, and carol's press of it."""
    async with used(discord) as use:
        assert (await use.answer({"type": 4, "data": {"components": [ROW], "flags": 64}})).status_code == 204
        async with ready(discord) as (client, _):
            yield use, await press(discord, client)


async def test_an_ephemeral_message_that_the_press_of_its_button_deletes_is_gone(discord: Outside):
    async with pressed_in_private(discord) as (use, second):
        assert (await second.answer({"type": 6})).status_code == 204
        assert (await discord.bot("DELETE", f"{second.webhook}/messages/@original")).status_code == 204
        for webhook in (use.webhook, second.webhook):
            assert (await discord.bot("GET", f"{webhook}/messages/@original")).status_code == 404
    assert (await discord.http.post("/control/interactions", json=PRESS)).status_code == 404


@pytest.mark.parametrize(("callback", "status"), [(6, 204), (7, 404)])
async def test_an_ephemeral_message_that_one_press_deletes_does_not_return_by_another(
    discord: Outside, callback: int, status: int
):
    async with pressed_in_private(discord) as (use, second):
        assert (await discord.bot("DELETE", f"{use.webhook}/messages/@original")).status_code == 204
        late = await second.answer({"type": callback, "data": {"content": "Changed"}})
        assert late.status_code == status, late.text
        original = await discord.bot("GET", f"{second.webhook}/messages/@original")
        assert original.status_code == 404, original.text
    assert (await discord.http.post("/control/interactions", json=PRESS)).status_code == 404


def test_another_message_answers_a_press_whose_own_message_is_gone():
    source, other = (Message(str(number), GENERAL, APP, "", "") for number in (1, 2))
    use = Interaction("3", COMPONENT, BASE, GENERAL, CAROL, source)
    use.callback, use.original = DEFERRED_UPDATE, source
    for shown, answered in (
        ({}, False),
        ({"1": source}, False),
        ({"1": source, "2": other}, True),
        ({"2": other}, True),
    ):
        use.messages = shown
        assert use.answered is answered, shown.keys()


async def test_a_message_of_the_channel_does_not_become_ephemeral(discord: Outside):
    async with ready(discord) as (client, _):
        use, message = await pressed(discord, client)
        assert (await use.answer({"type": 7, "data": {"content": "Changed", "flags": 64}})).status_code == 204
        assert (await discord.bot("GET", message)).json()["flags"] == 0


async def test_an_application_reads_its_emojis_and_discords_sounds(discord: Outside):
    assert (await discord.bot("GET", f"/applications/{APP}/emojis")).json() == {"items": []}
    sounds = (await discord.bot("GET", "/soundboard-default-sounds")).json()
    assert sounds[0]["name"] == "quack"


async def test_the_first_frames_have_the_fields_of_this_year(discord: Outside):
    async with ready(discord) as (client, first):
        assert first["application"]["flags_new"] == str(first["application"]["flags"])
        assert (await client.until("GUILD_CREATE"))["d"]["hub_type"] is None
