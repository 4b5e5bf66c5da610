"""A malicious contract in a few bytes of EVM code: only its answers and its logs matter."""

from gateways.evm import delegate_registry
from gateways.evm.tokens.event_topics import TRANSFER

# supportsInterface names ERC-165 and ERC-721, and balanceOf says that everybody has two tokens. Other calls write as
# many Transfer logs as their first word says, until the gas is used up. A call without data writes an event of the
# delegation registry with only its first topic.
RUNTIME = (
    "60003560e01c" "806370a0823114607f57" "806301ffc9a714608a57"
    "60003580156057575b60019003" f"8060006000" f"7f{TRANSFER[2:]}" "60006000a4" "80602257" "00"
    f"5b7f{delegate_registry.CHANGED[0][2:]}60006000a100"
    "5b600260005260206000f3"
    "5b60043560e01c806380ac58cd14906301ffc9a7141760005260206000f3"
)  # fmt: skip


def creation(runtime: str) -> bytes:
    """Return the code that deploys a runtime of at most 255 bytes."""
    code = bytes.fromhex(runtime)
    return bytes([0x60, len(code), 0x80, 0x60, 0x09, 0x3D, 0x39, 0x3D, 0xF3]) + code
