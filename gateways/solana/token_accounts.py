"""An owner's token accounts on Solana, as a node itself parses them; compressed and Core assets have none."""

from gateways.solana.node import SolanaNode
from gateways.transport.errors import ProviderConfused
from gateways.transport.json_shape import Shape

TOKEN_PROGRAMS = ("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb")
"""SPL Token and Token-2022."""
WRAPPED_SOL = frozenset({"So11111111111111111111111111111111111111112", "9pan9bMn5HatX4EJdBwg9VgCa7Uz5HL8N1m5D3NdXejP"})
"""The mints of wrapped SOL, one for each program. Their supply is always 0 (docs/facts.md#solana-coins)."""
CONFIRMED = {"commitment": "confirmed"}
PARSED = {"encoding": "jsonParsed", **CONFIRMED}

Filter = dict[str, str]
"""A `mint`, or the `programId` of a token program."""


async def token_accounts(node: SolanaNode, owner: str, wanted: Filter) -> tuple[Shape, list[Shape]]:
    """Return the node's answer, and the `info` of each of the owner's token accounts in it.

    Raises ProviderError, also if an account belongs to another owner.
    """
    answer = Shape(await node.ask("getTokenAccountsByOwner", [owner, wanted, PARSED]), "the answer", node.name)
    found = list[Shape]()
    for item in answer.items("value"):
        account = Shape(item, "a token account", node.name).inner("account")
        info = account.inner("data").inner("parsed").inner("info")
        if info.text("owner") != owner:
            raise ProviderConfused(node.name, "a token account is somebody else's")
        found.append(info)
    return answer, found
