"""Keeping what a round found out: balances, tokens and where to look for them, traits, and what each wallet held."""

from models.session import AsyncSession
from services import delegations, holdings, tallies, traits
from services.looked import Round


async def remember(db: AsyncSession, done: Round) -> None:
    """Write down what became known; what is unknown overwrites nothing, nor does what is older."""
    await holdings.remember(db, done.asked)
    await traits.remember(db, done.traits)
    await delegations.remember(db, done.delegations)
    await tallies.remember(db, [reading for item in done.looked for reading in item.readings_made()])
