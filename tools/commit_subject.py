"""The commit-msg hook: a subject is `area: verb object`, imperative, in at most 72 characters."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST = 72
FORM = re.compile(r"(?P<area>[a-z][a-z0-9]*(?:[ -][a-z0-9]+)*): (?P<verb>[a-z][a-z'-]*),? (?P<object>\S.*)")
# Subjects that git itself writes.
BY_GIT = re.compile(r"(?:Merge|Revert|Reapply|fixup!|squash!|amend!) ")
SCISSORS = re.compile(r"# -+ >8 -+")
# Imperative verbs that look like other forms.
WHOLE = frozenset({
    "bring", "cling", "ping", "ring", "string", "swing",
    "embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed",
    "alias", "bias", "canvas", "focus",
})  # fmt: skip
ENDING = re.compile(r"(?:ing|ed|(?<!s)s)$")


def complaints(message: str) -> Iterator[str]:
    """Yield what is wrong with a commit message, in the form that git passes to the hook."""
    lines = written(message)
    subject = lines[0] if lines else ""
    if BY_GIT.match(subject):
        return
    if len(subject) > LONGEST:
        yield f"the subject has {len(subject)} characters; at most {LONGEST} fit"
    form = FORM.fullmatch(subject)
    if form is None:
        yield "the subject is not of the form `area: verb object`, as in `queue: keep the greater urgency`"
    elif form["verb"] not in WHOLE and ENDING.search(form["verb"]):
        yield f"`{form['verb']}` is not imperative: write what the commit does, as in `keep`, not `keeps` or `kept`"
    if subject.endswith("."):
        yield "the subject ends with a full stop"
    if len(lines) > 1 and lines[1]:
        yield "the line below the subject is not empty"


def written(message: str) -> list[str]:
    """Return the lines that git will keep: no comments, nothing below its scissors, no empty lines at the start."""
    kept: list[str] = []
    for line in message.splitlines():
        if SCISSORS.match(line):
            break
        if not line.startswith("#") and (kept or line.strip()):
            kept.append(line.rstrip())
    return kept


def main(arguments: list[str]) -> int:
    """Check the message in the file that git names; return the exit code."""
    if len(arguments) != 1:
        print("Usage: commit_subject.py FILE", file=sys.stderr)
        return 2
    found = list(complaints(Path(arguments[0]).read_text(encoding="utf-8")))
    for complaint in found:
        print(f"Commit message: {complaint}.", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
