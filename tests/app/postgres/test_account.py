"""The account of the database is created once, even if several processes start at the same moment."""

import os
import pwd
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.postgres import account


def test_the_account_is_created_once_when_several_start_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A second `useradd` of the same name can replace the first one's number, which then belongs to no account."""
    numbers: list[int] = []

    def getpwnam(name: str) -> SimpleNamespace:
        if name != account.ACCOUNT or not numbers:
            raise KeyError(name)
        return SimpleNamespace(pw_uid=numbers[-1], pw_gid=numbers[-1])

    def create(_name: str, _say: account.Say) -> None:
        time.sleep(0.05)  # other starts arrive in the meantime
        numbers.append(999 - len(numbers))

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(pwd, "getpwnam", getpwnam)
    monkeypatch.setattr(account, "_create", create)
    with ThreadPoolExecutor(4) as starts:
        found = list(starts.map(lambda _: account.account_for(tmp_path, print), range(4)))
    assert [one.uid for one in found] == [999] * 4
