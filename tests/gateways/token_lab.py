"""The sandbox's own collections on a node of the test's, without the sandbox: deploy, mint, move and burn."""

import asyncio
import json
from typing import Any

from tests.gateways.evm_lab import ROOT, rpc

ARTEFACTS: dict[str, Any] = json.loads((ROOT / "sandbox" / "contracts" / "artefacts.json").read_text())
NAMES = {"ERC721": "Collection721", "ERC721Enumerable": "Collection721Enumerable", "ERC1155": "Collection1155"}
ANVIL = ("--auto-impersonate",)

# Claims to be an ERC-721 (slot 1 adds one more interface) and that everybody holds two; the rest differs.
HOLDS_TWO = """
    0 CALLDATALOAD 224 SHR DUP1 0x01ffc9a7 EQ @interface JUMPI
    0x70a08231 EQ @two JUMPI
    {rest}
two:
    2 0 MSTORE 32 0 RETURN
interface:
    4 CALLDATALOAD 224 SHR DUP1 0x01ffc9a7 EQ DUP2 0x80ac58cd EQ OR SWAP1 1 SLOAD EQ OR 0 MSTORE 32 0 RETURN
"""


async def collection(node: str, contract: str, standard: str) -> None:
    """Deploy a collection of this standard at this address."""
    await rpc(node, "anvil_setCode", contract, ARTEFACTS[NAMES[standard]]["runtime"])
    await rpc(node, "anvil_mine", "0x1")


async def proxy(node: str, contract: str, behind: str) -> None:
    """Deploy a minimal proxy (EIP-1167), which has another contract's code and its own storage."""
    await rpc(node, "anvil_setCode", contract, f"0x363d3d373d3d3d363d73{behind[2:]}5af43d82803e903d91602b57fd5bf3")


async def send(node: str, sender: str, contract: str, form: str, *values: int | str) -> None:
    """Send a transaction with arguments of one word each, and check that it succeeds."""
    known = [ARTEFACTS[name]["selectors"] for name in NAMES.values()]
    selector = next(selectors[form] for selectors in known if form in selectors)
    words = "".join(f"{value if isinstance(value, int) else int(value, 16):064x}" for value in values)
    asked = {"from": sender, "to": contract, "data": selector + words, "gas": hex(2_000_000)}
    await rpc(node, "anvil_setBalance", sender, hex(10**18))
    sent = await rpc(node, "eth_sendTransaction", asked)
    async with asyncio.timeout(20):
        # The node answers shortly before it has mined.
        while (receipt := await rpc(node, "eth_getTransactionReceipt", sent)) is None:
            await asyncio.sleep(0.005)
    assert receipt["status"] == "0x1", (form, values)


async def mint(node: str, contract: str, to: str, token: int, amount: int | None = None) -> None:
    """Mint a token, or an amount of one if given."""
    if amount is None:
        await send(node, to, contract, "mint(address,uint256)", to, token)
    else:
        await send(node, to, contract, "mint(address,uint256,uint256)", to, token, amount)


async def move(node: str, contract: str, sender: str, to: str, token: int) -> None:
    """Move an ERC-721 token to another owner."""
    await send(node, sender, contract, "transferFrom(address,address,uint256)", sender, to, token)


async def send_batch(node: str, contract: str, sender: str, to: str, amounts: dict[int, int]) -> None:
    """Move several ERC-1155 tokens to another owner at once."""
    count = len(amounts)
    lists = [count, *amounts, count, *amounts.values(), 0]
    heads = [5 * 32, (6 + count) * 32, (7 + 2 * count) * 32]
    form = "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)"
    await send(node, sender, contract, form, sender, to, *heads, *lists)
