"""What the proof by a profile says while the marketplace takes no questions."""

import pytest

from gateways.errors import ProviderBusy
from services.bio_proof import busy


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        (None, "OpenSea is busy. Please try again in 5 seconds."),
        (1.2, "OpenSea is busy. Please try again in 1 second."),
        (
            300.0,
            "OpenSea is busy. Please try again in 300 seconds. Or choose Transaction Proof, which does without it.",
        ),
    ],
)
def test_a_long_wait_comes_with_the_other_way(wait: float | None, said: str) -> None:
    verdict = busy(ProviderBusy("OpenSea", "too many requests", retry_after=wait))
    assert (verdict.message, verdict.again) == (said, True)
