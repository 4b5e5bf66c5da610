"""Collect the texts for people: `make texts` writes them to `locales/holdfast.pot` and merges them into each language.

An entry of a text that is no longer in the code is dropped. A new text is added without a translation.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "locales"
TEMPLATE = FOLDER / "holdfast.pot"
READ = ("app", "bot", "components", "gateways", "jobs", "locales", "models", "services", "state")
KEYWORDS = {"_": None, "N_": None, "ngettext": (1, 2), "pgettext": ((1, "c"), 2), "NP_": ((1, "c"), 2),
            "forms": (1, 2), "counted": (1, 2), "storable": None, "storable_count": (1, 2)}  # fmt: skip
COMMENT = "Translators:"
# A file changes only with its texts.
_UNSTEADY = (b'"POT-Creation-Date', b'"PO-Revision-Date', b'"Last-Translator', b'"Language-Team', b'"Generated-By',
             b'"Report-Msgid-Bugs-To', b'"Project-Id-Version')  # fmt: skip


def collected() -> Catalog:
    """Return every text in the code, with the files that it is in and the comments for translators."""
    catalog = Catalog(project="Holdfast", charset="utf-8", fuzzy=False)
    for room in READ:
        for name, _, text, comments, context in sorted(
            extract_from_dir(
                ROOT / room, [("**.py", "python")], keywords=KEYWORDS, comment_tags=[COMMENT], strip_comment_tags=True
            ),
            key=lambda found: (found[0], found[1]),
        ):
            catalog.add(text, locations=[(f"{room}/{name}", 0)], auto_comments=comments, context=context)
    return catalog


def written(catalog: Catalog) -> bytes:
    """Return the file of a catalogue."""
    out = BytesIO()
    write_po(out, catalog, width=116, ignore_obsolete=True, include_lineno=False)
    return b"".join(line for line in out.getvalue().splitlines(True) if not line.startswith(_UNSTEADY))


def merged(path: Path, template: Catalog) -> Catalog:
    """Return a language's catalogue with exactly the template's texts."""
    with path.open("rb") as file:
        catalog = read_po(file, locale=path.stem.replace("-", "_"))
    catalog.update(template, no_fuzzy_matching=True)
    return catalog


def main() -> int:
    """Write the template and every language. Return the exit code."""
    template = collected()
    TEMPLATE.write_bytes(written(template))
    for path in sorted(FOLDER.glob("*.po")):
        catalog = merged(path, template)
        path.write_bytes(written(catalog))
        lacking = sum(1 for message in catalog if message.id and not _said(message.string))
        print(f"{path.stem}: {len(catalog)} texts, {lacking} without a translation")
    return 0


def _said(string: object) -> bool:
    return all(string) if isinstance(string, tuple) else bool(string)


if __name__ == "__main__":
    sys.exit(main())
