"""Interactions on the wire: what Discord sends a bot when a person acts, and the forms of answer it accepts."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from sandbox.discord.world.permissions import ALL
from tests.sandbox.conftest import BASE, HOLDER, Outside, role_of
from tests.sandbox.discord.gateway.test_gateway import Client, ready

CAROL, DAVE, GENERAL = "1150000000000000303", "1150000000000000404", str(int(BASE) + 100)
USER, ROLE, MENTIONABLE, CHANNEL = 5, 6, 7, 8


async def told(discord: Outside, client: Client, user: str = "carol", **does: Any) -> dict[str, Any]:
    """Return the data of the event that reaches the bot."""
    return (await event_of(discord, client, user, **does))["data"]


async def event_of(discord: Outside, client: Client, user: str = "carol", **does: Any) -> dict[str, Any]:
    """Return the event that reaches the bot; it is answered by hand, so that the person need not wait."""
    body = {"guild": BASE, "user": user, **does}
    doing = asyncio.create_task(discord.http.post("/control/interactions", json=body))
    while not doing.done():
        event = await client.frame()
        if event["t"] == "INTERACTION_CREATE":
            callback = f"/interactions/{event['d']['id']}/{event['d']['token']}/callback"
            answer = {"type": 8, "data": {"choices": []}} if does["kind"] == "autocomplete" else {"type": 6}
            answer = {"type": 4, "data": {"content": "Seen"}} if does["kind"] == "command" else answer
            done = await discord.bot("POST", callback, answer)
            assert done.status_code == 204, done.text
            assert not [name for name in done.headers if name.lower().startswith("x-ratelimit")], "nothing limits it"
            doing.cancel()
            return event["d"]
    pytest.fail((await doing).text)


async def test_a_select_of_people_roles_or_channels_says_what_its_ids_stand_for(discord: Outside):
    rows = [
        {"type": 1, "components": [{"type": kind, "custom_id": f"menu-{kind}"}]}
        for kind in (USER, ROLE, MENTIONABLE, CHANNEL)
    ]
    await discord.bot("POST", f"/channels/{GENERAL}/messages", {"content": "Choose", "components": rows})
    async with ready(discord) as (client, _):
        chosen = {
            kind: await told(discord, client, kind="select", custom_id=f"menu-{kind}", values=[value])
            for kind, value in ((USER, "dave"), (ROLE, "Holder"), (MENTIONABLE, "dave"), (CHANNEL, "general"))
        }
    assert [data["values"] for data in chosen.values()] == [[DAVE], [role_of(BASE, HOLDER)], [DAVE], [GENERAL]]
    assert chosen[USER]["resolved"]["users"][DAVE]["username"] == "dave"
    assert "user" not in chosen[USER]["resolved"]["members"][DAVE]
    assert chosen[ROLE]["resolved"]["roles"][role_of(BASE, HOLDER)]["name"] == "Holder"
    assert set(chosen[MENTIONABLE]["resolved"]) == {"users", "members"}
    assert chosen[CHANNEL]["resolved"]["channels"][GENERAL]["permissions"].isdigit()


@pytest.mark.parametrize(
    ("menu", "values"),
    [
        ({"type": 3, "options": [{"label": value, "value": value} for value in "ab"]}, ["a", "a"]),
        ({"type": 5}, ["carol", CAROL]),
    ],
)
async def test_an_option_of_a_menu_is_chosen_once(discord: Outside, menu: dict[str, Any], values: list[str]):
    menu = {**menu, "custom_id": "menu", "min_values": 2, "max_values": 2}
    rows = [{"type": 1, "components": [menu]}]
    await discord.bot("POST", f"/channels/{GENERAL}/messages", {"content": "Choose", "components": rows})
    body = {"guild": BASE, "user": "carol", "kind": "select", "custom_id": "menu", "values": values, "wait": 0}
    answer = await discord.http.post("/control/interactions", json=body)
    assert (answer.status_code, answer.json()["message"]) == (400, "Each value is chosen once.")


async def test_an_interaction_has_the_locale_of_the_persons_client(discord: Outside):
    button = {"type": 2, "style": 1, "label": "Go", "custom_id": "go"}
    row = {"type": 1, "components": [button]}
    await discord.bot("POST", f"/channels/{GENERAL}/messages", {"content": "Go", "components": [row]})
    async with ready(discord) as (client, _):
        press = {"kind": "button", "custom_id": "go"}
        assert (await event_of(discord, client, **press, locale="pt-BR"))["locale"] == "pt-BR"
        assert (await event_of(discord, client, **press))["locale"] == "en-US"
    body = {"guild": BASE, "user": "carol", **press, "locale": "pt"}
    refused = await discord.http.post("/control/interactions", json=body)
    assert refused.status_code == 400
    assert "Discord has no locale 'pt'" in refused.text


async def test_a_channel_that_is_chosen_comes_with_what_the_chooser_may_do_there(discord: Outside):
    options = [{"type": 7, "name": "where", "description": "A channel"}]
    app = discord.settings["DISCORD_CLIENT_ID"]
    command = {"name": "go", "description": "Go", "options": options}
    await discord.bot("POST", f"/applications/{app}/commands", command)
    async with ready(discord) as (client, _):
        seen = [
            await told(discord, client, user, kind="command", name="go", options={"where": "general"})
            for user in ("ada", "carol")
        ]
    granted = [int(data["resolved"]["channels"][GENERAL]["permissions"]) for data in seen]
    assert granted[0] == ALL
    assert 0 < granted[1] < ALL


@pytest.mark.parametrize(
    ("option", "fitting", "refused"),
    [
        ({"type": 3, "min_length": 2, "max_length": 3}, ["ab", "abc"], ["a", "abcd", ""]),
        ({"type": 3}, ["", "a" * 6000], ["a" * 6001]),
        ({"type": 4, "min_value": -1, "max_value": 5}, [-1, "5"], [-2, 6, "x", 1.5, True, "²", "9" * 5000, None, [1]]),
        ({"type": 4}, [2**53], [2**53 + 2, "1e400"]),
        ({"type": 10, "min_value": 0.5}, [0.5, "1e3"], [0.4, "NaN", "inf", {}]),
    ],
)
async def test_a_value_beyond_an_options_limits_reaches_no_bot(
    discord: Outside, option: dict[str, Any], fitting: list[Any], refused: list[Any]
):
    app, named = discord.settings["DISCORD_CLIENT_ID"], {"name": "what", "description": "What"}
    command = {"name": "go", "description": "Go", "options": [{**option, **named}]}
    await discord.bot("POST", f"/applications/{app}/commands", command)
    async with ready(discord) as (client, _):
        for value in fitting:
            seen = await told(discord, client, kind="command", name="go", options={"what": value})
            assert seen["options"][0]["value"] == (value if option["type"] == 3 else float(value))
    for value in refused:
        body = {"guild": BASE, "user": "carol", "kind": "command", "name": "go", "options": {"what": value}}
        answer = await discord.http.post("/control/interactions", json=body)
        assert (answer.status_code, "what" in answer.json()["message"]) == (400, True), value


@pytest.mark.parametrize("typed", ["1", "", "7x", 70])
async def test_a_number_that_is_being_typed_is_sent_as_text_whatever_its_limits(discord: Outside, typed: str | int):
    option = {"type": 4, "name": "what", "description": "What", "min_value": 10, "max_value": 60, "autocomplete": True}
    command = {"name": "go", "description": "Go", "options": [option]}
    await discord.bot("POST", f"/applications/{discord.settings['DISCORD_CLIENT_ID']}/commands", command)
    async with ready(discord) as (client, _):
        seen = await told(discord, client, kind="autocomplete", name="go", options={"what": typed})
    assert seen["options"] == [{"type": 4, "name": "what", "value": str(typed), "focused": True}]


@pytest.mark.parametrize("files", [None, {"files[0]": ("a.txt", b"abc")}])
async def test_a_message_may_come_as_a_form_with_its_json_in_a_field(discord: Outside, files: Any):
    url = f"{discord.settings['DISCORD_API_URL']}/channels/{GENERAL}/messages"
    headers = {"Authorization": f"Bot {discord.settings['DISCORD_BOT_TOKEN']}"}
    form = {"payload_json": json.dumps({"content": "In a form"})}
    async with httpx.AsyncClient(headers=headers) as http:
        answer = await http.post(url, data=form, files=files)
    assert (answer.status_code, answer.json()["content"]) == (200, "In a form")


@pytest.mark.parametrize("filename", [b"", b'; filename="blob"'], ids=["its content type", "as browsers send a Blob"])
async def test_the_json_of_a_form_may_have_its_content_type_and_be_a_file(discord: Outside, filename: bytes):
    """Discord's own example of a form has the type (https://docs.discord.com/developers/reference#uploading-files)."""
    part = b'Content-Disposition: form-data; name="payload_json"' + filename + b"\r\nContent-Type: application/json"
    content = b"--a\r\n" + part + b'\r\n\r\n{"content": "In a form"}\r\n--a--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=a"}
    answer = await discord.bot("POST", f"/channels/{GENERAL}/messages", content=content, headers=headers)
    assert (answer.status_code, answer.json().get("content")) == (200, "In a form")


FORM = {
    "custom_id": "form",
    "title": "Form",
    "components": [
        {"type": 18, "label": "Word", "component": {"type": 4, "custom_id": "word", "style": 1, "max_length": 3}},
        {
            "type": 18,
            "label": "Way",
            "component": {
                "type": 3,
                "custom_id": "way",
                "options": [{"label": value, "value": value, "default": value == "b"} for value in "abc"],
                "max_values": 2,
            },
        },
    ],
}


async def opens(discord: Outside, client: Client, form: dict[str, Any] = FORM) -> None:
    """Show carol a form."""
    body = {"guild": BASE, "user": "carol", "kind": "button", "custom_id": "go"}
    pressing = asyncio.create_task(discord.http.post("/control/interactions", json=body))
    event = (await client.until("INTERACTION_CREATE"))["d"]
    shown = {"type": 9, "data": form}
    assert (await discord.bot("POST", f"/interactions/{event['id']}/{event['token']}/callback", shown)).is_success
    await pressing


async def test_a_menu_of_a_modal_sends_what_is_chosen_there(discord: Outside):
    row = {"type": 1, "components": [{"type": 2, "style": 1, "label": "Go", "custom_id": "go"}]}
    await discord.bot("POST", f"/channels/{GENERAL}/messages", {"content": "Go", "components": [row]})
    async with ready(discord) as (client, _):
        for way, sent in (({}, ["b"]), ({"way": "a"}, ["a"])):
            await opens(discord, client)
            data = await told(discord, client, kind="modal", custom_id="form", fields={"word": "abc", **way})
            parts = [row["component"] for row in data["components"]]
            assert (parts[0]["value"], parts[1]["values"]) == ("abc", sent)
        await opens(discord, client)
        for fields, status in (
            ({"word": "abcd"}, 400), ({"word": ["abc"]}, 400), ({"word": "abc", "way": "d"}, 400),
            ({"word": "abc", "way": ["a", "b", "c"]}, 400), ({"word": "abc", "way": ["a", "a"]}, 400),
            ({"word": "abc", "way": []}, 400), ({"words": "abc"}, 404),
        ):  # fmt: skip
            body = {"guild": BASE, "user": "carol", "kind": "modal", "custom_id": "form", "fields": fields, "wait": 0}
            assert (await discord.http.post("/control/interactions", json=body)).status_code == status, fields


BOXES = {
    "custom_id": "form",
    "title": "Form",
    "components": [
        {"type": 18, "label": label, "component": {**component, "custom_id": label}}
        for label, component in {
            "one": {"type": 21, "options": [{"label": value, "value": value} for value in "ab"]},
            "some": {
                "type": 22, "options": [{"label": value, "value": value, "default": value == "d"} for value in "cd"],
            },
            "yes": {"type": 23, "default": True},
            "who": {"type": 5, "required": False},
        }.items()
    ],
}  # fmt: skip


async def test_boxes_of_a_modal_send_what_is_ticked_there(discord: Outside):
    """The shapes are those of https://docs.discord.com/developers/components/reference."""
    row = {"type": 1, "components": [{"type": 2, "style": 1, "label": "Go", "custom_id": "go"}]}
    await discord.bot("POST", f"/channels/{GENERAL}/messages", {"content": "Go", "components": [row]})
    async with ready(discord) as (client, _):
        for fields, sent in (
            ({"one": "b"}, ["b", ["d"], True, []]),
            ({"one": ["a"], "some": ["c", "d"], "yes": False, "who": "dave"}, ["a", ["c", "d"], False, [DAVE]]),
        ):
            await opens(discord, client, BOXES)
            data = await told(discord, client, kind="modal", custom_id="form", fields=fields)
            parts = [row["component"] for row in data["components"]]
            assert [part.get("value", part.get("values")) for part in parts] == sent
            assert [part["type"] for part in parts] == [21, 22, 23, 5]
            assert [part["id"] for part in parts] == [2, 4, 6, 8], "each row has the number before"
        assert data["resolved"]["users"][DAVE]["username"] == "dave"
        await opens(discord, client, BOXES)
        for fields in (
            {}, {"one": []}, {"one": ["a", "b"]}, {"one": "c"}, {"one": "a", "some": []}, {"one": "a", "some": "e"},
            {"one": "a", "yes": 1}, {"one": "a", "yes": None}, {"one": "a", "who": ["dave", "carol"]},
        ):  # fmt: skip
            body = {"guild": BASE, "user": "carol", "kind": "modal", "custom_id": "form", "fields": fields, "wait": 0}
            assert (await discord.http.post("/control/interactions", json=body)).status_code == 400, fields
