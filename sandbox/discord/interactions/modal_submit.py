"""A modal as a person fills it in: text of the lengths that it asks for, and choices that it offers.

The submitted shapes are those of https://docs.discord.com/developers/components/reference.
"""

from itertools import count
from typing import Any

from sandbox.base.refusal import Refusal
from sandbox.discord.forms import components as parts
from sandbox.discord.interactions.interactions import inputs_of
from sandbox.discord.interactions.resolving import Resolving

Json = dict[str, Any]


def filled_in(rows: list[Json], given: Json, resolving: Resolving) -> list[Json]:
    """Return a modal's `components` as its submission has them, from custom ids and values. Raises Refusal.

    `resolving` collects the users, roles and channels that were chosen.
    """
    asked = {entry["custom_id"] for row in rows for _, entry in inputs_of(row)}
    if unknown := given.keys() - asked:
        raise Refusal(404, f"The modal has no field {', '.join(sorted(unknown))}.")
    numbers = count(1)
    sent: list[Json] = []
    for row in rows:
        shown: Json = {"type": row["type"], "id": row.get("id") or next(numbers)}
        entries = [
            {
                "type": entry["type"],
                "id": entry.get("id") or next(numbers),
                "custom_id": entry["custom_id"],
                **_answer(entry, given, resolving),
            }
            for _, entry in inputs_of(row)
        ]
        if row["type"] == parts.LABEL:
            shown["component"] = entries[0]
        elif row["type"] == parts.ACTION_ROW:
            shown["components"] = entries
        sent.append(shown)
    return sent


def _answer(entry: Json, given: Json, resolving: Resolving) -> Json:
    """Return the `value` or the `values` of a component."""
    kind, name = entry["type"], entry["custom_id"]
    if kind == parts.TEXT_INPUT:
        return {"value": _text(entry, given)}
    if kind == parts.CHECKBOX:
        return {"value": _ticked(name, given.get(name, entry.get("default") or False))}
    if kind == parts.RADIO_GROUP:
        chosen = _chosen(entry, given, 1)
        return {"value": chosen[0] if chosen else None}
    if kind == parts.CHECKBOX_GROUP:
        return {"values": _chosen(entry, given, len(entry["options"]))}
    if kind == parts.STRING_SELECT:
        return {"values": _chosen(entry, given, 1)}
    if kind == parts.FILE_UPLOAD:
        if name in given or entry.get("required", True):
            raise Refusal(400, f"The field {name} takes a file, and nobody here has one.")
        return {"values": []}
    named = {5: resolving.user, 6: resolving.role, 7: resolving.mentionable, 8: resolving.channel}[kind]
    usual = [one["id"] for one in entry.get("default_values") or []]
    return {"values": _counted(entry, [named(str(one)) for one in _listed(given.get(name, usual))], 1)}


def _text(entry: Json, given: Json) -> str:
    name, value = entry["custom_id"], given.get(entry["custom_id"], entry.get("value") or "")
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise Refusal(400, f"The field {name} takes text.")
    lowest = max(entry.get("min_length") or 0, 1 if entry.get("required", True) else 0)
    highest = entry.get("max_length") or 4000
    if (value or entry.get("required", True)) and not lowest <= len(str(value)) <= highest:
        raise Refusal(400, f"The field {name} takes {lowest} to {highest} characters.")
    return str(value)


def _ticked(name: str, value: Any) -> bool:
    """Return whether a checkbox is ticked; a form of the console sends a text, or an empty list for an empty box."""
    if value in ([], "false", "true"):
        return value == "true"
    if not isinstance(value, bool):
        raise Refusal(400, f"The field {name} is true or false.")
    return value


def _chosen(entry: Json, given: Json, most: int) -> list[str]:
    """Return what is chosen: by default the options that the bot selected from the start."""
    name, offered = entry["custom_id"], [option["value"] for option in entry["options"]]
    usual = [option["value"] for option in entry["options"] if option.get("default")]
    chosen = _listed(given.get(name, usual))
    if not all(value in offered for value in chosen):
        raise Refusal(400, f"The field {name} offers: {', '.join(offered)}.")
    return _counted(entry, chosen, most)


def _counted(entry: Json, chosen: list[str], most: int) -> list[str]:
    """Return the same; `most` is how many may be chosen where the bot does not say. Raises Refusal."""
    if len(set(chosen)) < len(chosen):
        raise Refusal(400, "Each value is chosen once.")
    lowest, highest = entry.get("min_values"), entry.get("max_values") or most
    lowest = 1 if lowest is None else lowest
    if (chosen or entry.get("required", True)) and not lowest <= len(chosen) <= highest:
        raise Refusal(400, f"The field {entry['custom_id']} takes {lowest} to {highest} of its options.")
    return chosen


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
