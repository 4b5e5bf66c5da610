"""The supervisor's output, where its encoding does not have every character."""

import io
import sys

import pytest

from app.supervisor import output


@pytest.mark.parametrize(
    ("encoding", "printed"), [("iso-8859-1", b"L\xf6we \\u2713"), ("utf-8", b"L\xc3\xb6we \xe2\x9c\x93")]
)
def test_what_the_encoding_lacks_is_escaped(monkeypatch: pytest.MonkeyPatch, encoding: str, printed: bytes) -> None:
    """An error would end the reading of a process's output, and that process could print nothing any more."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    output.repeat("web", "Löwe ✓")
    assert written.getvalue() == b"web     | " + printed + b"\n"
