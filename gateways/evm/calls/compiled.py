"""A question to a view function, made ready to be asked: its call data, and where the value is in the answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gateways.chains.indexer import LOWEST_CONTRACT
from gateways.chains.view_sheet import ViewQuestion
from gateways.evm.calls import answer_path, arguments, signature
from gateways.evm.calls.abi_types import SignatureRefused
from gateways.evm.calls.answer_path import AnswerPath
from gateways.evm.calls.arguments import CallData
from locales import _


@dataclass(frozen=True, slots=True)
class CompiledView:
    """A question's contract, call data and path; `key` is the same for all questions to a function of a contract."""

    contract: bytes
    data: CallData
    path: AnswerPath

    @property
    def key(self) -> bytes:
        """The contract and the function."""
        return self.contract + self.data.template[:4]


def question(contract: str, function: str, args: Sequence[Any], path: str) -> ViewQuestion:
    """Return the question in its normal form; `contract` is an address in lower case.

    Raises SignatureRefused with the sentence that says what is wrong.
    """
    if int(contract, 16) < LOWEST_CONTRACT:
        raise SignatureRefused(_("Addresses as low as this one are part of the chain itself: they have no functions."))
    found = signature.parse(function)
    where = answer_path.parse(path, found.outputs)
    return ViewQuestion(contract, found.text, arguments.normal(found, args), where.text)


@lru_cache(maxsize=1_000)
def compiled(asked: ViewQuestion) -> CompiledView:
    """Return the compiled form of a question that `question` returned. Raises SignatureRefused for any other."""
    found = signature.parse(asked.function)
    path = answer_path.parse(asked.path, found.outputs)
    return CompiledView(bytes.fromhex(asked.contract[2:]), arguments.call_data(found, asked.args), path)
