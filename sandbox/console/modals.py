"""The form that the bot opened for a person, as a dialog."""

from typing import Any

from sandbox.console.elements.forms import act, hidden
from sandbox.console.elements.markup import Markup, el, join
from sandbox.console.elements.place import Place
from sandbox.discord import LocalDiscord
from sandbox.discord.forms import components as parts
from sandbox.discord.interactions.interactions import inputs_of

PARAGRAPH = 2
Json = dict[str, Any]


def modal(discord: LocalDiscord, place: Place) -> Markup:
    """Return the modal that the place names if the person has it open, otherwise nothing."""
    opened = discord.interactions.modals.get((place.user.id, place.modal or ""))
    if opened is None:
        return Markup()
    asked: Json = opened[0]
    bot = discord.world.users[discord.bot_id].username
    rows = [_row(row, entry, label) for row in asked["components"] for label, entry in inputs_of(row)]
    close = el("a", "Cancel", href=place.url(), class_="button secondary", data_close=True)
    return el(
        "dialog",
        el("h2", asked["shown"]["title"], id="modal-title"),
        act(
            place,
            "modal",
            rows,
            el("p", f"This form is sent to {bot}. Do not share passwords.", class_="dim"),
            el("div", close, el("button", "Submit"), class_="row end"),
            custom_id=place.modal,
        ),
        open=True,
        aria_labelledby="modal-title",
    )


def _row(row: Json, entry: Json, label: str) -> Markup:
    name, needed = f"field.{entry['custom_id']}", entry["type"] != parts.CHECKBOX and bool(entry.get("required", True))
    key, hint = f"modal-{entry['custom_id']}", row.get("description")
    described = f"{key}-hint" if hint else None
    star = el("span", " *", class_="needed", aria_hidden="true") if needed else None
    head = join(el("label", label, star, for_=key), el("p", str(hint), class_="dim", id=described) if hint else None)
    common: dict[str, str | bool | None] = {"id": key, "required": needed, "aria_describedby": described}
    match entry["type"]:
        case parts.TEXT_INPUT:
            value = entry.get("value")
            lengths = {"minlength": entry.get("min_length"), "maxlength": entry.get("max_length")}
            hinted = {"placeholder": entry.get("placeholder"), **lengths}
            if entry.get("style") == PARAGRAPH:
                shown = el("textarea", value, name=name, rows="4", **common, **hinted)
            else:
                shown = el("input", name=name, value=value, autocomplete="off", **common, **hinted)
        case parts.RADIO_GROUP | parts.CHECKBOX_GROUP:
            return _boxes(entry, label, star, hint)
        case parts.CHECKBOX:
            ticked = bool(entry.get("default"))
            shown = el("input", type="checkbox", name=name, value="true", checked=ticked, id=key)
            return el("div", _answered(entry), shown, " ", head, class_="asked")
        case _:
            choices = [
                el("option", one["label"], value=one["value"], selected=bool(one.get("default")))
                for one in entry.get("options", [])
            ]
            shown = el("select", choices, name=name, multiple=(entry.get("max_values") or 1) > 1, **common)
    return el("div", _answered(entry) if entry["type"] != parts.TEXT_INPUT else None, head, shown, class_="asked")


def _answered(entry: Json) -> Markup:
    """Return a field that says that a choice was offered, since browsers send nothing where nothing is chosen."""
    return hidden(offered=str(entry["custom_id"]))


def _boxes(entry: Json, label: str, star: Markup | None, hint: Any) -> Markup:
    """Return a group of which one option (radio) or several can be chosen."""
    one = entry["type"] == parts.RADIO_GROUP
    boxes = [
        el(
            "label",
            el(
                "input",
                type="radio" if one else "checkbox",
                name=f"field.{entry['custom_id']}",
                value=str(option["value"]),
                checked=bool(option.get("default")),
                required=one and bool(entry.get("required", True)),
            ),
            " ",
            str(option["label"]),
            el("span", f" {option['description']}", class_="dim") if option.get("description") else None,
        )
        for option in entry["options"]
    ]
    legend = el("legend", label, star)
    about = el("p", str(hint), class_="dim") if hint else None
    return el("fieldset", _answered(entry), legend, about, boxes, class_="asked")
