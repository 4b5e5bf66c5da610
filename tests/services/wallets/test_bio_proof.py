"""What the proof by a profile says while the marketplace accepts no reads, and how often we look by ourselves."""

from decimal import Decimal
from types import SimpleNamespace
from typing import cast

import pytest

from gateways import Gateways
from gateways.marketplaces.quota import Outlook
from gateways.transport.errors import NotThere, ProviderBusy, ProviderError
from models import Challenge, transaction
from services.core.actors import Actor
from services.wallets import bio_schedule
from services.wallets.bio_proof import busy, verify

FEW = "OpenSea lets us look at few profiles right now, so we rarely check automatically. Once your code is "
NO_MORE = "OpenSea lets us look at no more profiles right now. Please try again "
OTHER = "Or choose Transaction Proof, which does without OpenSea."


@pytest.mark.parametrize(
    ("wait", "asked_for", "said"),
    [
        (None, 0.0, "OpenSea is busy. Please try again in 5 seconds."),
        (1.2, 0.0, "OpenSea is busy. Please try again in 2 seconds."),
        (60.0, 60.0, f"{NO_MORE}in 60 seconds. {OTHER}"),
        (300.0, 1_500.0, f"{NO_MORE}in 25 minutes. {OTHER}"),
        (300.0, 0.0, f"{FEW}saved, press the button to check it at once. {OTHER}"),
    ],
)
def test_a_long_wait_comes_with_the_other_way(wait: float | None, asked_for: float, said: str) -> None:
    verdict = busy(ProviderBusy("OpenSea", "too many requests", retry_after=wait), Outlook(asked_for, 3.0))
    assert (verdict.message, verdict.again) == (said, True)
    assert (verdict.wait, verdict.stretch) == (wait or 5.0, 3.0)


def waits(looks: bio_schedule.BioChecks, stretch: float = 1.0) -> list[float]:
    found = list[float]()
    while looks.next_in is not None:
        found.append(looks.next_in)
        looks = looks.after(stretch=stretch)
    return found


def test_a_bio_is_checked_less_and_less_often() -> None:
    assert waits(bio_schedule.after_request()) == [5, 10, 20, 40, 80, 160, 160]
    assert waits(bio_schedule.after_showing()) == [15, 30, 60, 120, 160, 160]
    assert waits(bio_schedule.after_request(stretch=4), 4) == [20, 40, 80, 160]


def test_waiting_for_the_limit_is_no_look_and_has_an_end() -> None:
    looks = bio_schedule.after_request(wait=300)
    assert looks.next_in == 300
    for _ in range(3):
        looks = looks.after(wait=300)
    assert waits(looks.after()) == [5, 10, 20, 40, 80, 160, 160]
    assert looks.after(wait=1_200).after(wait=1_200).after(wait=600).next_in is None


@pytest.mark.parametrize("fault", [ProviderBusy("Discord", "later", retry_after=60), NotThere("Discord", "no user")])
async def test_a_name_that_discord_does_not_give_says_nothing_about_a_profile(
    database: str, fault: ProviderError
) -> None:
    async def fails(_discord_id: str) -> None:
        raise fault

    opensea = SimpleNamespace(quota=SimpleNamespace(outlook=lambda _: Outlook(0.0, 1.0)))
    outside = cast("Gateways", SimpleNamespace(discord=SimpleNamespace(user=fails), opensea=opensea))
    row = Challenge(user_id=1, family="evm", address="0x1", code="holdfast-code", amount_wei=Decimal(1))
    async with transaction() as db:
        verdict = await verify(db, outside, Actor(1, "1", "carol"), row)
    assert (verdict.success, verdict.again, verdict.wait) == (False, True, fault.retry_after or 0.0)
    assert verdict.message.startswith("Discord does not answer as it should. Nothing was changed;")
