"""The trail on Solana: what a wallet signed since its challenge, as far as it says so in a memo."""

from dataclasses import replace

from gateways import Gateways
from gateways.transport.errors import ProviderError
from services.wallets.transaction_check import TransactionOutcome, judge_memo
from services.wallets.watch_state import JudgedTransaction, OpenChallenge, Point


async def follow(outside: Gateways, watched: list[OpenChallenge]) -> None:
    """Read each wallet's new signatures, and the transactions among them whose memo carries its code."""
    if any("solana" not in one.points for one in watched):
        slot = (await outside.chains.head("solana")).block
        for one in watched:
            one.points.setdefault("solana", Point(0, slot, one.begins_at(slot)))
    for one in watched:
        try:
            await _look(outside, one)
        except ProviderError:
            # A wallet with very many new transactions is refused by itself.
            one.unreachable.add("solana")


async def _look(outside: Gateways, one: OpenChallenge) -> None:
    point = one.points["solana"]
    newer = await outside.solana.newer_signatures(one.address, point.block)
    for signature in newer:
        if signature.memo is not None and one.code in signature.memo:
            await judge_signature(outside, one, signature.signature)
            if one.judged is not None and one.judged.outcome is TransactionOutcome.PROVES:
                return
    if newer:
        one.points["solana"] = replace(point, block=newer[-1].slot)


async def judge_signature(outside: Gateways, one: OpenChallenge, signature: str) -> bool:
    """Judge the transaction with this signature for the challenge; False while Solana does not know it as final."""
    found = await outside.solana.memo_transaction(signature)
    if found is None:
        return False
    one.found, one.judged = JudgedTransaction("solana", found.signature, found.slot), judge_memo(found, one.wanted)
    one.note = one.judged.message
    return True
