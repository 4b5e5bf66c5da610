"""Make a release: `make release VERSION=1.2.3` says what would happen, `ARGS=--tag` does it. Nothing is pushed.

It needs git, and changes nothing unless every check passes: a branch without uncommitted changes, a version newer than
every tag, and changes to publish. It then gives the changes under Unreleased in CHANGELOG.md a heading with the version
and the date, writes the version into pyproject.toml, commits both, and makes an annotated tag with the notes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path

from tools.release.notes import NotReleasable, notes

ROOT = Path(__file__).resolve().parents[2]
FORM = re.compile(r"(\d+)\.(\d+)\.(\d+)")
UNRELEASED = re.compile(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", re.M | re.S)
OWN_VERSION = re.compile(r'(?<=^version = ")[^"\n]*(?="$)', re.M)


def released(changelog: str, version: str, date: str) -> str:
    """Return the changelog with the unreleased changes under a heading of the version. Raises NotReleasable.

    It stays as it is if it has such a heading and nothing is unreleased: an earlier try may have ended before its tag.
    """
    found = UNRELEASED.search(changelog)
    if found is None:
        raise NotReleasable("CHANGELOG.md has no section `## [Unreleased]`.")
    changes = any(line.strip() and not line.startswith("#") for line in found[1].splitlines())
    described = re.search(rf"^## \[{re.escape(version)}\]", changelog, re.M) is not None
    if changes and described:
        raise NotReleasable(f"CHANGELOG.md has a section for {version} already, and more under Unreleased.")
    if not changes and not described:
        raise NotReleasable("CHANGELOG.md has no changes under Unreleased, and no section for this version.")
    if described:
        return changelog
    heading = f"## [Unreleased]\n\n## [{version}] - {date}\n"
    return changelog[: found.start()] + heading + found[1] + changelog[found.end() :]


class Release:
    """One release of the repository in a directory: checked by `look`, made by `make`."""

    def __init__(self, root: Path, version: str | None, date: str) -> None:
        self._root = root
        self._changelog = root / "CHANGELOG.md"
        self._project = root / "pyproject.toml"
        self.version = version or str(tomllib.loads(self._project.read_text())["project"]["version"])
        self.tag = f"v{self.version}"
        self._date = date
        self._texts: dict[Path, str] = {}
        self.notes = ""

    def look(self) -> list[str]:
        """Return what `make` will do, one sentence a step. Raises NotReleasable if it cannot."""
        self._check_tree()
        self._check_version()
        project = OWN_VERSION.sub(self.version, self._project.read_text(), count=1)
        changelog = released(self._changelog.read_text(), self.version, self._date)
        self.notes = notes(self.version, changelog, project)
        wanted = {self._changelog: changelog, self._project: project}
        self._texts = {path: text for path, text in wanted.items() if path.read_text() != text}
        names = " and ".join(path.name for path in self._texts)
        return [
            *([f"write {self.version} into {names}, and commit that as `{self._subject}`"] if names else []),
            f"make the annotated tag {self.tag} with the notes",
        ]

    def make(self) -> None:
        """Commit and tag. Raises NotReleasable after putting the files back if the commit is refused."""
        before = {path: path.read_text() for path in self._texts}
        try:
            for path, text in self._texts.items():
                path.write_text(text)
            if self._texts:
                self._git("commit", "--quiet", "--message", self._subject, "--", *(path.name for path in self._texts))
        except BaseException:
            for path, text in before.items():
                path.write_text(text)
            raise
        # Without `whitespace` git takes the headings of the notes for comments.
        said = f"Holdfast {self.version}\n\n{self.notes}"
        self._git("tag", "--annotate", "--cleanup=whitespace", "--file=-", self.tag, given=said)

    @property
    def _subject(self) -> str:
        return f"release: publish {self.version}"

    def _check_tree(self) -> None:
        if not self._git("rev-parse", "--abbrev-ref", "HEAD").removesuffix("HEAD"):
            raise NotReleasable("No branch is checked out, so the commit would belong to none.")
        if changed := self._git("status", "--porcelain"):
            raise NotReleasable(f"These files are not committed:\n{changed}")

    def _check_version(self) -> None:
        if not FORM.fullmatch(self.version):
            raise NotReleasable(f"{self.version} is not a version: it has three numbers, as in 1.2.3.")
        newer = [tag for tag in self._git("tag", "--list", "v*").split() if _numbers(tag) >= _numbers(self.tag)]
        if newer:
            raise NotReleasable(f"{self.version} is not newer than the tag {max(newer, key=_numbers)}.")

    def _git(self, *arguments: str, given: str = "") -> str:
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=self._root, input=given, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NotReleasable(f"git {arguments[0]} failed: {(done.stderr or done.stdout).strip()}")
        return done.stdout.rstrip()


def _numbers(tag: str) -> tuple[int, ...]:
    """Return the numbers of a tag for comparison; an empty tuple, which is less than all, if it names no version."""
    found = FORM.fullmatch(tag.removeprefix("v"))
    return tuple(map(int, found.groups())) if found else ()


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Print what a release would do, or do it with `--tag`. Return 1 with a sentence if a check fails."""
    parser = argparse.ArgumentParser(prog="make release", description="A commit and a tag for a version.")
    parser.add_argument("version", nargs="?", help="three numbers; without it the one in pyproject.toml")
    parser.add_argument("--tag", action="store_true", help="do it, instead of only saying what would be done")
    given = parser.parse_args(arguments)
    try:
        release = Release(root, given.version, datetime.now(UTC).strftime("%Y-%m-%d"))
        steps = release.look()
        if given.tag:
            release.make()
    except NotReleasable as fault:
        print(fault, file=sys.stderr)
        return 1
    print(release.notes)
    print("Done:" if given.tag else "This would:")
    print("\n".join(f"- {step}" for step in steps))
    if given.tag:
        print(f"Nothing is pushed. To publish it: git push origin HEAD {release.tag}")
    else:
        print(f"To do it: make release VERSION={release.version} ARGS=--tag")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
