"""The standards of contracts are remembered for some minutes, however many contracts strangers make."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

import pytest

from gateways.evm.rpc.node import Head
from gateways.evm.tokens import standards
from gateways.evm.tokens.contract_info import ERC165, ERC721
from gateways.evm.tokens.one_word_calls import Asker, Question
from gateways.evm.tokens.standards import KEPT, Standards

HEAD = Head(1, datetime.now(UTC))


class Collections:
    """Stands for an Asker where every contract is an ERC-721; counts the contracts that it was asked about."""

    def __init__(self) -> None:
        self.contracts = list[bytes]()

    async def ask(self, head: Head, questions: Sequence[Question]) -> list[int]:
        self.contracts += dict.fromkeys(contract for contract, _ in questions)
        return [int(data[4:8] in {ERC165, ERC721}) for _, data in questions]


async def test_contracts_that_were_seen_long_ago_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asker, now = Collections(), 1_000.0
    known = Standards(cast("Asker", asker))
    monkeypatch.setattr(standards, "monotonic", lambda: now)
    first, *others = (number.to_bytes(20) for number in range(1, 100))
    for one in others:
        assert await known.of(HEAD, [first, one]) == {first: "ERC721", one: "ERC721"}
        now += KEPT / 4
    assert len(vars(known)["_known"]) < 10
    assert asker.contracts.count(first) < len(others) / 2
