"""Before the socket connects, a page for everybody is complete and shows each audience its own links."""

import re

import pytest

from components.pages.help.oauth_help import test_auth as login_check
from components.pages.public.error_pages import oauth_error
from components.pages.public.features import features
from state.public.error_pages import AUTH_FAILED, NOT_CONFIGURED


@pytest.mark.parametrize(
    ("page", "visitors", "members"),
    [
        (features, "/api/auth/discord", "/dashboard"),
        (oauth_error, "/api/auth/discord", "/api/auth/discord/connect"),
    ],
)  # fmt: skip
def test_each_audience_has_its_own_way_on(page: object, visitors: str, members: str) -> None:
    assert callable(page)
    found = re.findall(r'"(for-(?:visitors|members) contents)".*?to:"([^"]+)"', str(page()))
    assert ("for-visitors contents", visitors) in found
    assert ("for-members contents", members) in found


def test_the_error_page_has_both_sentences_and_the_document_chooses_one() -> None:
    shown = dict(re.findall(r'"(for-(?:failed-login|other-errors))".*?"(Discord [^"]+)"', str(oauth_error())))
    assert shown == {"for-failed-login": AUTH_FAILED, "for-other-errors": NOT_CONFIGURED}


def test_nobody_who_is_logged_in_reads_that_they_are_not() -> None:
    before, *after = str(login_check()).split('"Not logged in."')
    assert len(after) == 1
    assert '"for-visitors contents"' in before.rpartition("className:")[2]
