"""A view function's values for wallets at one block, and the wallets for which no value could be learned."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ViewQuestion:
    """One function of a contract with its arguments, `{wallet}` among them, and the path to the value that matters.

    All are in their normal form, so that two rules with the same question share its answer.
    """

    contract: str
    function: str
    args: tuple[str, ...]
    path: str = ""


@dataclass(frozen=True, slots=True)
class ViewSheet:
    """The values by wallet (lower case), all of one block of one node: numbers, 1 and 0 for true and false, or texts.

    `unsure` maps each wallet without a value to the reason.
    """

    chain: str
    question: ViewQuestion
    block: int
    block_time: datetime
    endpoint: int
    source: str
    values: Mapping[str, int | str]
    unsure: Mapping[str, str]
