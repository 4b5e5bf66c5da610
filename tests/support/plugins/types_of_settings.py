"""Lets pydantic-settings examine the type of each setting once: tests read the settings again and again."""

from typing import Any, cast

from pydantic_settings import EnvSettingsSource

SOURCE = cast(Any, EnvSettingsSource)


def examine_once() -> None:
    """Keep what the sources of a class of settings find out about its fields. It takes most of a reading's time."""
    names, complexity = SOURCE._extract_field_info, SOURCE._field_is_complex
    # The fields are kept with the results, so that no later field can have the identity of an earlier one.
    found = dict[tuple[int, str], tuple[Any, Any]]()

    def names_once(self: Any, field: Any, field_name: str, *more: Any) -> Any:
        if more:
            return names(self, field, field_name, *more)
        if (known := found.get((id(field), field_name))) is None:
            known = found[id(field), field_name] = field, names(self, field, field_name)
        return known[1]

    def complexity_once(self: Any, field: Any) -> Any:
        if (known := found.get((id(field), ""))) is None:
            known = found[id(field), ""] = field, complexity(self, field)
        return known[1]

    SOURCE._extract_field_info, SOURCE._field_is_complex = names_once, complexity_once
