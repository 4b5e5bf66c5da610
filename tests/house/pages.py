"""The pages for people: which there are, and how a test names them."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
DECISIONS = DOCS / "decisions"
README = ROOT / "README.md"
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / ".github").rglob("*.md")), *sorted(DOCS.rglob("*.md")))


def name_of(page: Path) -> str:
    """Return a page's path in the repository."""
    return page.relative_to(ROOT).as_posix()
