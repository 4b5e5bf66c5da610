"""Keeping what a round found out: balances, tokens and where to look for them, traits, and what each wallet held."""

from collections.abc import Sequence

from models.database import AsyncSession, Question, Rows
from services import delegations, holdings, tallies, traits
from services.looked import Round


def before(done: Round) -> list[Question]:
    """What has to be asked before a round is written down."""
    return holdings.before(done.asked)


async def remember(db: AsyncSession, done: Round, told: Sequence[Rows]) -> None:
    """Write down what became known; what is unknown overwrites nothing, nor does what is older.

    `told` is what was asked `before`, in this very transaction.
    """
    await holdings.remember(db, done.asked, told)
    await traits.remember(db, done.traits)
    await delegations.remember(db, done.delegations)
    await tallies.remember(db, [reading for item in done.looked for reading in item.readings_made()])
