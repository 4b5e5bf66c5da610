"""The privacy policy says what the code does: its numbers are the code's own."""

import re

import pytest

from components.pages.public import policies
from services.accounts import forgotten_people
from services.accounts.sessions import SESSION_LIFE
from services.privacy import retention
from services.rules.types import stored_address_lists
from settings import settings


def told() -> str:
    """Return the whole text of the page."""
    return " ".join(re.findall(r'"((?:[^"\\]|\\.)*)"', str(policies.privacy_policy())))


def test_how_long_things_are_kept_is_what_housekeeping_does() -> None:
    page = told()
    assert f"log is kept for {settings().log_days} days" in page
    assert f"from its list of members after {retention.LEFT_DAYS} days" in page
    assert f"{retention.LEFT_DAYS} days after you leave the server we delete that entry" in page
    assert f"{retention.TOLD_DAYS} days after we showed them to you, and {retention.UNTOLD_DAYS} days" in page
    assert f"an ID for {retention.TALLY_DAYS} days after we counted them" in page
    assert f"a wallet received {retention.TRAIL_DAYS} days after we last used it" in page
    assert f"a role that a rule gives, we keep who it was for {retention.RIVAL_DAYS} days." in page
    assert f"For {forgotten_people.DIGEST_DAYS} more days we keep a digest" in page
    assert f"after {stored_address_lists.UNUSED_HOURS} hours if none does" in page
    assert SESSION_LIFE.days == 7
    assert "at most seven days" in page


@pytest.mark.parametrize(("days", "words"), [(30, "for 30 days"), (0, "as long as the service runs")])
def test_the_setting_is_what_the_page_says(days: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = settings().model_copy(update={"log_days": days})
    monkeypatch.setattr("components.pages.public.policies.settings", lambda: chosen)
    assert words in told()
