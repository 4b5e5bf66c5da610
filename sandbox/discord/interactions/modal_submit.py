"""A modal as a person fills it in: text of the lengths that it asks for, and choices that it offers."""

from typing import Any

from sandbox.base.refusal import Refusal
from sandbox.discord.forms import components as parts
from sandbox.discord.interactions.interactions import inputs_of

Json = dict[str, Any]


def filled_in(rows: list[Json], given: Json) -> list[Json]:
    """Return a modal's `components` as its submission has them, from custom ids and values. Raises Refusal."""
    asked = {entry["custom_id"] for row in rows for _, entry in inputs_of(row)}
    if unknown := given.keys() - asked:
        raise Refusal(404, f"The modal has no field {', '.join(sorted(unknown))}.")
    return [_row(row, given, number) for number, row in enumerate(rows, start=1)]


def _row(row: Json, given: Json, number: int) -> Json:
    if row["type"] == parts.TEXT_DISPLAY:
        return {"type": parts.TEXT_DISPLAY, "id": number}
    entries = [_entry(entry, given) for _, entry in inputs_of(row)]
    if "component" in row:
        return {"type": parts.LABEL, "id": number, "component": entries[0]}
    return {"type": parts.ACTION_ROW, "id": number, "components": entries}


def _entry(entry: Json, given: Json) -> Json:
    about = {"type": entry["type"], "id": 100, "custom_id": entry["custom_id"]}
    if entry["type"] == parts.TEXT_INPUT:
        return {**about, "value": _text(entry, given)}
    if entry["type"] == parts.STRING_SELECT:
        return {**about, "values": _chosen(entry, given)}
    value = given.get(entry["custom_id"], "")
    return {**about, "values": value if isinstance(value, list) else [value]}


def _text(entry: Json, given: Json) -> str:
    name, value = entry["custom_id"], given.get(entry["custom_id"], entry.get("value") or "")
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise Refusal(400, f"The field {name} takes text.")
    lowest = max(entry.get("min_length") or 0, 1 if entry.get("required", True) else 0)
    highest = entry.get("max_length") or 4000
    if (value or entry.get("required", True)) and not lowest <= len(str(value)) <= highest:
        raise Refusal(400, f"The field {name} takes {lowest} to {highest} characters.")
    return str(value)


def _chosen(entry: Json, given: Json) -> list[str]:
    """Return what is chosen in a menu: by default the options that the bot selected from the start."""
    name, offered = entry["custom_id"], [option["value"] for option in entry["options"]]
    usual = [option["value"] for option in entry["options"] if option.get("default")]
    chosen = given.get(name, usual)
    chosen = chosen if isinstance(chosen, list) else [chosen]
    if not all(value in offered for value in chosen):
        raise Refusal(400, f"The field {name} offers: {', '.join(offered)}.")
    if len(set(chosen)) < len(chosen):
        raise Refusal(400, "Each value is chosen once.")
    lowest, highest = entry.get("min_values"), entry.get("max_values") or 1
    lowest = 1 if lowest is None else lowest
    if (chosen or entry.get("required", True)) and not lowest <= len(chosen) <= highest:
        raise Refusal(400, f"The field {name} takes {lowest} to {highest} of its options.")
    return chosen
