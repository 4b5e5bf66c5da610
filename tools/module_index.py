"""Write docs/architecture/modules.md, which says what each module does: `python -m tools.module_index`."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/architecture/modules.md"
UP = PurePosixPath("../..")
"""The repository, seen from the page."""
LEFT_OUT = ("clients/", "models/migrations/versions/")
"""The client is generated, and migrations are read by their date."""
HEAD = """# Every module in one line

The first line of each module, folder by folder: search this page for the thing that you look for. To find it by a
question instead, read the [tables of the house](README.md). A test for a module is in the folder of the same name
under `tests/`; of those folders, this page names what tests share. `python -m tools.module_index` writes it.
"""


def first_line(source: str) -> str:
    """Return the first sentence or line of a module's docstring, on one line; an empty text if there is none."""
    lines = (ast.get_docstring(ast.parse(_head(source))) or "").split("\n\n")[0].splitlines()
    return " ".join(line.strip() for line in lines)


def _head(source: str) -> str:
    """Return a source to the end of the text with which it begins; an empty text if it begins otherwise."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in {tokenize.COMMENT, tokenize.NL}:
            lines = source.splitlines(keepends=True)[: token.end[0]]
            return "".join(lines) if token.type == tokenize.STRING else ""
    return ""


def modules() -> list[str]:
    """Return the paths of the modules that the page names, relative to the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    return sorted(
        path
        for path in set(listed)
        if not path.startswith(LEFT_OUT) and not PurePosixPath(path).name.startswith("test_") and (ROOT / path).exists()
    )


def page(sources: Iterable[tuple[str, str]]) -> str:
    """Return the page for modules, each given by its path and its source; modules without a docstring are left out."""
    return "\n".join([HEAD, *_folders(sources)]) + "\n"


def _folders(sources: Iterable[tuple[str, str]]) -> Iterator[str]:
    by_folder = sorted(sources, key=lambda one: (PurePosixPath(one[0]).parent, one[0]))
    for folder, inside in groupby(by_folder, key=lambda one: PurePosixPath(one[0]).parent):
        said = {PurePosixPath(path).name: first_line(source) for path, source in inside}
        about = said.pop("__init__.py", "")
        yield f"## {'The root' if folder == PurePosixPath() else f'`{folder}`'}\n"
        if about:
            yield f"{about}\n"
        if said := {name: line for name, line in said.items() if line}:
            yield from (f"- [`{name}`]({UP / folder / name}): {line}" for name, line in said.items())
            yield ""


def main() -> int:
    """Write the page."""
    PAGE.write_text(page((path, (ROOT / path).read_text()) for path in modules()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
