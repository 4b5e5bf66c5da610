"""How a node refuses, on Solana too, sorted by the remedy: ask for less, later, in another way, or another node."""

import re
from collections.abc import Mapping
from typing import cast

from gateways.transport.errors import (
    ProviderBusy,
    ProviderConfused,
    ProviderDown,
    ProviderError,
    ProviderRefused,
    Unauthorized,
    seconds_to_wait,
    without_key,
)


class RpcRefused(ProviderRefused):
    """A JSON-RPC error that fits no other name here."""


class Unsupported(RpcRefused):
    """The node does not know the method or one of its parameters (JSON-RPC -32600 to -32602)."""


class Reverted(RpcRefused):
    """The EVM ran and the call reverted (code 3, or the word in the message); `data` is what it reverted with."""

    data: bytes = b""


class Halted(Reverted):
    """The call burnt all its gas at an invalid opcode or jump, where code from newer compilers would revert."""


class NeedsAddress(RpcRefused):
    """The node gives logs only of contracts that the request names; asking for fewer blocks does not help."""


class TooMuch(RpcRefused):
    """The call needs more gas, time or bytes than the node gives; a smaller one may pass."""


class NodeTimedOut(ProviderDown):
    """No answer within the time for one request; a smaller one may pass."""


class StateMissing(ProviderDown):
    """The node does not have that block (yet, or any more)."""


class Pruned(StateMissing):
    """The node does not have a block so old any more, or not under this plan; it may have newer ones."""


_BUSY = re.compile(
    r"rate.?limit|too many requests|throttl|capacity|compute units|quota|credits|(request|call)s? (limit|count)"
    r"|requests? per|(daily|monthly) (request|limit|allowance)|usage limit for your|rps limit|max usage",
    re.IGNORECASE,
)
_NEEDS_ADDRESS = re.compile(r"specify an address|address (is|filter is) (required|mandatory)", re.IGNORECASE)
_MISSING = re.compile(
    r"missing trie|header not found|(unknown|missing) block|block.{0,20}(not found|doesn't exist)|could not be found"
    r"|no state available|state ((0x)?[0-9a-f]{8,} )?(is )?(not available|unavailable)"
    r"|beyond (the )?(current head|latest)|requested data not available",
    re.IGNORECASE,
)
"""Of geth, Nethermind, Besu, reth, erigon and ZKsync, for a block that they lack or whose state they have deleted."""
_PRUNED = re.compile(
    r"prun(ed|ing)|receipts? not available|data before .{0,40}not available"
    r"|archive,? (requests|state|data|nodes?|debug)",
    re.IGNORECASE,
)
_REVERTED = re.compile("revert", re.IGNORECASE)
_HALTED = re.compile(r"(invalid|bad).?jump|invalid.{0,8}opcode|bad instruction|stack.?(under|over)flow", re.IGNORECASE)
_TOO_MUCH = re.compile(
    r"oog|gas|memory|too large|time.?out|timed out|aborted|response size|exceed|limit", re.IGNORECASE
)


PRUNED_HISTORY = 4444
"""The code for blocks that a node has deleted (EIP-4444)."""
LONGEST_MESSAGE = 2_000
"""Characters of an error's message that are read."""


def refusal_in(error: object, provider: str, url: str) -> ProviderError:
    """Return the exception for the `error` in a JSON-RPC answer of the node at this URL.

    Members and admins read it, so the URL's key is left out, which some nodes repeat when they refuse it.
    """
    fields = cast("Mapping[str, object]", error) if isinstance(error, Mapping) else {"message": error}
    code, message = fields.get("code"), str(fields.get("message", ""))[:LONGEST_MESSAGE]
    return rpc_error(provider, code if isinstance(code, int) else 0, without_key(message, url), fields.get("data"))


def http_fault(provider: str, url: str, status: int, headers: Mapping[str, str], answer: object) -> ProviderError:
    """Return the exception for an HTTP answer without a result; `answer` is its JSON, None where it has none.

    Some nodes send JSON-RPC errors with an HTTP error's status, those of a batch in a list. What a node that is busy or
    down says in Retry-After is the fault's `retry_after`.
    """
    fault = _http_fault(provider, url, status, answer)
    if isinstance(fault, ProviderBusy) or type(fault) is ProviderDown:
        fault.retry_after = seconds_to_wait(headers.get("retry-after"))
    return fault


def _http_fault(provider: str, url: str, status: int, answer: object) -> ProviderError:
    if status == 429:
        return ProviderBusy(provider, "too many requests")
    first = cast("object", answer[0] if isinstance(answer, list) and answer else answer)
    error = cast("Mapping[str, object]", first).get("error") if isinstance(first, dict) else None
    fault = refusal_in(cast("object", error), provider, url) if isinstance(error, dict | str) else None
    if status == 413:
        # QuickNode refuses too many blocks of logs in this way, and says how many it gives.
        said = "the request is too large" if fault is None else fault.reason
        return TooMuch(provider, said, status=status)
    # Alchemy sends 403 for a used-up plan, publicnode for a block that only its archive has, and both for a wrong key.
    is_about_key = status in {401, 402} or (status == 403 and not isinstance(fault, Pruned | NeedsAddress))
    if fault is not None and (not is_about_key or isinstance(fault, ProviderBusy)):
        return fault
    if status == 402:
        return ProviderBusy(provider, "its plan's requests are used up")
    if status in {401, 403}:
        return Unauthorized(provider, f"HTTP {status}", status=status)
    if status >= 500:
        return ProviderDown(provider, f"HTTP {status}")
    if status >= 400:
        return ProviderRefused(provider, f"HTTP {status}", status=status)
    return ProviderConfused(provider, f"HTTP {status} without usable JSON")


def rpc_error(provider: str, code: int, message: str, data: object = None) -> ProviderError:
    """Return the exception for a JSON-RPC error. Nodes agree on few codes, so the message decides where it must.

    What follows the word "reverted" is the contract's own text, in megabytes if it likes. It must not speak for the
    node: "too many requests" would let it spoil others' answers.
    """
    message = message[:LONGEST_MESSAGE]
    said = f"JSON-RPC error {code} ({message})"
    own = "" if code == 3 else _REVERTED.split(message, maxsplit=1)[0]
    if code in {402, 429, -32005} or _BUSY.search(own):
        return ProviderBusy(provider, said)
    # Publicnode also refuses too many blocks with this code; its message then says so.
    if (code == -32701 and "range" not in message.lower()) or _NEEDS_ADDRESS.search(own):
        return NeedsAddress(provider, said, status=200, code=code)
    if code == PRUNED_HISTORY or _PRUNED.search(own):
        return Pruned(provider, said)
    if _MISSING.search(own):
        return StateMissing(provider, said)
    # Nethermind and OpenEthereum say only in the data how a call ended: "Reverted 0x…", "OutOfGas".
    ending = data[:LONGEST_MESSAGE] if isinstance(data, str) and not data.startswith("0x") else ""
    if code == 3 or own != message or _REVERTED.match(ending):
        reverted = Reverted(provider, said, status=200, code=code)
        reverted.data = _revert_data(data)
        return reverted
    if _HALTED.search(f"{message} {data}"):
        return Halted(provider, said, status=200, code=code)
    if code in {-32600, -32601, -32602}:
        return Unsupported(provider, said, status=200, code=code)
    if _TOO_MUCH.search(f"{message} {ending}"):
        return TooMuch(provider, said, status=200, code=code)
    return RpcRefused(provider, said, status=200, code=code)


def _revert_data(data: object) -> bytes:
    """Return the `data` of an error if it is hexadecimal, otherwise nothing; some nodes put words before it."""
    # No pattern: for each byte of a contract's megabytes it would take a hundred bytes of memory.
    _, mark, digits = data.rpartition("0x") if isinstance(data, str) else ("", "", "")
    try:
        return bytes.fromhex(digits) if mark and len(digits.split(maxsplit=1)) <= 1 else b""
    except ValueError:
        return b""
