"""Names and descriptions of commands in every language that Discord and we both have."""

from collections.abc import Mapping
from typing import Any

import nextcord

from locales import ENGLISH, best_of, in_every_language, pgettext

LOCALES = (*(str(locale.value) for locale in nextcord.Locale), "es-419")
"""Discord's locales; the library lacks the Spanish of Latin America (docs/facts.md#discord-commands)."""
COMMAND = "command"
"""The catalogue's context for names, which Discord requires in lower case (docs/facts.md#discord-commands)."""


def named(name: str, description: str) -> dict[str, Any]:
    """Return the words of a command or an option, in every language."""
    return {
        "name": name,
        "name_localizations": for_discord(in_every_language(name, COMMAND)),
        "description": description,
        "description_localizations": for_discord(in_every_language(description)),
    }


def name_of(command: nextcord.BaseApplicationCommand) -> str:
    """Return a command's name as Discord shows it to the reader."""
    name = command.name or ""
    return pgettext(COMMAND, name)


def for_discord(texts: Mapping[str, str]) -> dict[nextcord.Locale | str, str]:
    """Return texts by language as texts by Discord's locales, of which two are Spanish."""
    known = ((locale, best_of(locale)) for locale in LOCALES)
    return {locale: texts[language] for locale, language in known if language != ENGLISH and language in texts}
