"""Which tokens of one contract owners hold, read from one node by the contract's standard, at the node's head."""

from collections.abc import Mapping, Sequence

from gateways.chains.indexer import Listing
from gateways.chains.read_point import ReadPoint
from gateways.chains.token_sheet import TokenHints, TokenIds, TokenSheet
from gateways.evm.rpc.node import Node
from gateways.evm.tokens.erc721 import Erc721
from gateways.evm.tokens.erc1155 import Erc1155
from gateways.evm.tokens.one_word_calls import Asker
from gateways.evm.tokens.read_progress import TokenRead, raw
from gateways.evm.tokens.received_tokens import LogReader
from gateways.evm.tokens.standards import Standards
from locales import N_


class TokenReader:
    """Reads owners' tokens through one node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._asker = Asker(node)
        self._standards = Standards(self._asker)
        self._logs = LogReader(node)

    async def read(
        self,
        contract: str,
        owners: Sequence[str],
        wanted: TokenIds | None,
        trails: Mapping[str, TokenHints],
        listing: Listing,
        at: ReadPoint,
        deadline: float,
    ) -> TokenSheet:
        """Return the owners' tokens at the node's head; with `wanted`, only the wanted ones. Raises ProviderError."""
        head = await (self.node.settled if at.settled else self.node.head)(at.not_before_block)
        read = TokenRead(
            self._asker, self._logs, listing, head, raw(contract), tuple(owners), wanted, dict(trails), deadline
        )
        standard = (await self._standards.of(head, [read.contract]))[read.contract]
        if standard is None:
            read.doubt(owners, N_("the contract names no standard that can be read"))
        elif standard == "ERC1155":
            await Erc1155(read).run()
        else:
            await Erc721(read, standard == "ERC721Enumerable").run()
        return self._sheet(read, contract)

    def _sheet(self, read: TokenRead, contract: str) -> TokenSheet:
        held = {
            owner: {str(one): amount for one, amount in found}
            for owner, amounts in read.amounts.items()
            if (found := sorted((one, amount) for one, amount in amounts.items() if read.matters(one)))
        }
        trails = {
            owner: trail.with_ids(map(str, sorted(found)))
            for owner, found in read.amounts.items()
            if (trail := read.trails.get(owner, TokenHints())) != TokenHints() or found
        }
        return TokenSheet(
            chain=self.node.chain.key, contract=contract, block=read.head.block, block_time=read.head.time,
            endpoint=self.node.index, source=self.node.source, held=held, unsure=read.unsure, trails=trails,
        )  # fmt: skip
