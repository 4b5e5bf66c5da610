"""A transaction in the forms in which a node shows it: compiled or parsed."""

from typing import Any

from sandbox.base.people import base58
from sandbox.solana.assets import Transaction

MEMO = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr"
MEMO_V1 = "Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo"
SYSTEM = "11111111111111111111111111111111"
TOKEN = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
BUDGET = "ComputeBudget111111111111111111111111111111"
UNITS = base58(bytes([2]) + (40_000).to_bytes(4, "little"))


def shown(sent: Transaction, *, parsed: bool, blockhash: str) -> dict[str, Any]:
    """Return getTransaction's result (docs/facts.md#solana-transactions), as jsonParsed or json."""
    programs = [BUDGET, SYSTEM, *([MEMO] if sent.memos else [])]
    keys = [*sent.signers, *sent.others, *programs]
    err = {"InstructionError": [1, {"Custom": 1}]} if sent.failed else None
    balances = [1_000_000] * len(keys)
    logs = [
        line for program in programs[::2] for line in (f"Program {program} invoke [1]", f"Program {program} success")
    ]
    message: dict[str, Any] = {
        "accountKeys": [_key(sent, key) for key in keys] if parsed else keys,
        "addressTableLookups": [],
        "instructions": _parsed(sent) if parsed else _compiled(sent, keys),
        "recentBlockhash": blockhash,
    }
    if not parsed:
        message["header"] = {
            "numRequiredSignatures": len(sent.signers),
            "numReadonlySignedAccounts": 0,
            "numReadonlyUnsignedAccounts": len(programs),
        }
    return {
        "slot": sent.slot,
        "blockTime": sent.time,
        "version": 0,
        "meta": {
            "err": err,
            "status": {"Ok": None} if err is None else {"Err": err},
            "fee": 5_000,
            "preBalances": balances,
            "postBalances": balances,
            "preTokenBalances": [],
            "postTokenBalances": [],
            "innerInstructions": [],
            "loadedAddresses": {"readonly": [], "writable": []},
            "rewards": [],
            "logMessages": logs,
            "computeUnitsConsumed": 450,
        },
        "transaction": {"signatures": [sent.signature], "message": message},
    }


def _key(sent: Transaction, key: str) -> dict[str, Any]:
    writable = key in sent.signers or key in sent.others
    return {"pubkey": key, "signer": key in sent.signers, "writable": writable, "source": "transaction"}


def _parsed(sent: Transaction) -> list[dict[str, Any]]:
    to = sent.others[0] if sent.others else sent.signers[0]
    info = {"source": sent.signers[0], "destination": to, "lamports": sent.lamports}
    return [
        {"programId": BUDGET, "accounts": [], "data": UNITS, "stackHeight": 1},
        {"program": "system", "programId": SYSTEM, "parsed": {"type": "transfer", "info": info}, "stackHeight": 1},
        *({"program": "spl-memo", "programId": MEMO, "parsed": memo, "stackHeight": 1} for memo in sent.memos),
    ]


def _compiled(sent: Transaction, keys: list[str]) -> list[dict[str, Any]]:
    to = keys.index(sent.others[0] if sent.others else sent.signers[0])
    data = base58(bytes([2, 0, 0, 0]) + sent.lamports.to_bytes(8, "little"))
    instructions = [(BUDGET, [], UNITS), (SYSTEM, [0, to], data)]
    instructions += [(MEMO, [0], base58(memo.encode())) for memo in sent.memos]
    return [
        {"programIdIndex": keys.index(program), "accounts": accounts, "data": data, "stackHeight": 1}
        for program, accounts, data in instructions
    ]
