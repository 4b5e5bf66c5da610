"""A receiver's check: what was signed in time is an event once, and everything else is refused."""

import hashlib
import hmac
import json

import pytest

from holdfast_client import SeenDeliveries, WebhookRefused, WebhookRepeated, verify_webhook

NOW = 1_800_000_000
SECRET = "whsec_one"
BODY = json.dumps({"id": "6f9a", "event": "role.given", "data": {"discordId": "42"}}).encode()


def signed(body: bytes = BODY, *secrets: str, at: int = NOW) -> str:
    made = [hmac.new(one.encode(), b"%d." % at + body, hashlib.sha256).hexdigest() for one in secrets or (SECRET,)]
    return ",".join([f"t={at}", *(f"v1={one}" for one in made)])


def check(body: bytes, signature: str | None, *secrets: str, seen: SeenDeliveries | None = None) -> str:
    found = verify_webhook(body, signature, *(secrets or (SECRET,)), seen=seen or SeenDeliveries(), clock=lambda: NOW)
    return found["event"]


def test_what_was_signed_is_an_event() -> None:
    assert check(BODY, signed()) == "role.given"


def test_either_secret_counts_while_it_is_changed() -> None:
    both = signed(BODY, "whsec_new", SECRET)
    assert check(BODY, both) == check(BODY, both, "whsec_new") == "role.given"
    assert check(BODY, signed(), "whsec_new", SECRET) == "role.given"


def test_a_replay_is_refused_and_so_is_a_repetition_with_a_new_signature() -> None:
    seen = SeenDeliveries()
    check(BODY, signed(), seen=seen)
    for again in (signed(), signed(at=NOW + 60)):
        with pytest.raises(WebhookRepeated):
            check(BODY, again, seen=seen)
    seen.forget("6f9a")
    assert check(BODY, signed(), seen=seen) == "role.given"


@pytest.mark.parametrize(
    "body",
    [BODY + b" ", BODY.replace(b"42", b"43"), BODY[:-1], b"", b"x" * 1_000_001],
    ids=["longer", "altered", "shorter", "empty", "huge"],
)
def test_an_altered_body_is_refused(body: bytes) -> None:
    with pytest.raises(WebhookRefused):
        check(body, signed())


@pytest.mark.parametrize("seconds", [-301, 301, -86_400, 10**9])
def test_a_late_signature_is_refused_and_one_of_the_future(seconds: int) -> None:
    with pytest.raises(WebhookRefused):
        check(BODY, signed(at=NOW + seconds))


@pytest.mark.parametrize("seconds", [-300, 300])
def test_clocks_may_differ_a_little(seconds: int) -> None:
    assert check(BODY, signed(at=NOW + seconds)) == "role.given"


@pytest.mark.parametrize(
    "signature",
    [
        None, "", "t=,v1=", f"t={NOW}", signed().partition(",")[2], signed().replace("v1", "v0"),
        f"t={NOW + 1},{signed().partition(',')[2]}", f"t={NOW},{signed()}", signed().replace(str(NOW), f"+{NOW}"),
        signed().replace(str(NOW), "1_800_000_000"), signed() + ",v1=0" * 8, signed() + "," * 1_000, "v1=\udcff,t=1",
        f"t={NOW},v1=\udcff", f"t={'9' * 400},v1=00", f"t=٣,v1={'0' * 64}", signed(BODY, "whsec_another"),
    ],
)  # fmt: skip
def test_any_other_header_is_refused(signature: str | None) -> None:
    with pytest.raises(WebhookRefused):
        check(BODY, signature)


@pytest.mark.parametrize("body", [b"[]", b"1", b"{}", b'{"id": 3}', b"{", b"\xff"])
def test_what_is_no_event_is_refused_even_if_it_is_signed(body: bytes) -> None:
    with pytest.raises(WebhookRefused):
        check(body, signed(body))


@pytest.mark.parametrize("secrets", [("",), (SECRET, "")])
def test_an_empty_secret_checks_nothing(secrets: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="secret"):
        check(BODY, signed(BODY, ""), *secrets)


def test_what_came_is_forgotten_after_two_days_and_never_grows_without_bounds() -> None:
    moment = 0.0
    seen = SeenDeliveries(most=3, seconds=100, clock=lambda: moment)
    assert [seen.first(one) for one in "aab"] == [True, False, True]
    moment = 99.0
    assert not seen.first("a")
    moment = 100.0
    assert seen.first("a")
    for number in range(50):
        seen.first(str(number))
    assert len(seen._came) == 3
    assert [seen.first(str(number)) for number in (47, 48, 49)] == [False] * 3
