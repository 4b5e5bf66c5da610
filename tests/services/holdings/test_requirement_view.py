"""What people read about one requirement and its evidence."""

import pytest

from services.core.answer import Answer
from services.holdings.last_known import Remembered
from services.holdings.requirement_view import view_of
from services.holdings.wallet_shares import WalletShare
from services.rules.expression import Requirement

CATS = "0x" + "ca" * 20


@pytest.mark.parametrize(
    ("count", "named"),
    [
        (0, ""),
        (1, "0x0000...0000"),
        (3, "0x0000...0000, 0x0000...0001 and 0x0000...0002"),
        (50, "0x0000...0000, 0x0000...0001, 0x0000...0002 and 47 more"),
    ],
)
def test_of_many_wallets_three_are_named_and_the_others_counted(count: int, named: str) -> None:
    holding = tuple(WalletShare(f"0x{number:040d}", 1) for number in range(count))
    held = Remembered(Answer.YES, count, holding)
    view = view_of(Requirement("basic", "base", CATS), held, {}, shared=True)
    assert view.wallets == named
    assert view_of(Requirement("basic", "base", CATS), held, {}, shared=False).wallets == ""
