"""Which token standard many contracts follow by ERC-165, asked in one go; without ERC-165 see contract_info.py."""

from collections.abc import Iterable
from time import monotonic

from gateways.evm.rpc.node import Head
from gateways.evm.tokens.contract_info import ENUMERABLE, ERC165, ERC721, ERC1155, NEVER, SUPPORTS, Standard
from gateways.evm.tokens.one_word_calls import Asker

KEPT = 600.0
"""Seconds for which a standard is remembered; the contract behind a proxy may change."""
INTERFACES = (ERC165, NEVER, ERC1155, ERC721, ENUMERABLE)


class Standards:
    """The standards that contracts name, as one node reports them."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self._known: dict[bytes, tuple[float, Standard]] = {}

    async def of(self, head: Head, contracts: Iterable[bytes]) -> dict[bytes, Standard | None]:
        """Return each contract's standard; None where it names none that we support, or does not answer.

        See docs/facts.md#token-standards. Raises ProviderError.
        """
        wanted, now = list(dict.fromkeys(contracts)), monotonic()
        # Strangers send members tokens of new contracts without end, so those of earlier reads are dropped.
        self._known = {one: known for one, known in self._known.items() if known[0] >= now}
        found: dict[bytes, Standard | None] = {one: self._known[one][1] for one in wanted if one in self._known}
        fresh = [one for one in wanted if one not in found]
        said = await self._asker.ask(
            head, [(one, SUPPORTS + interface.ljust(32, b"\0")) for one in fresh for interface in INTERFACES]
        )
        for place, one in enumerate(fresh):
            erc165, never, erc1155, erc721, enumerable = (
                answer == 1 for answer in said[place * len(INTERFACES) : (place + 1) * len(INTERFACES)]
            )
            standard: Standard | None = None
            if erc165 and not never and (erc1155 or erc721):
                standard = "ERC1155" if erc1155 else "ERC721Enumerable" if enumerable else "ERC721"
                self._known[one] = (now + KEPT, standard)
            found[one] = standard
        return found
