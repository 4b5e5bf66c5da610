"""Texts for proving a wallet: what a member has to show, and the result of a check.

`services/wallets/bio_proof.py` says why a bio does not prove a wallet; `not_yet` shows that sentence with buttons.
"""

from nextcord import ButtonStyle

from bot.messages.replies import Button, Reply
from bot.messages.words import on
from services.core.addresses import shorten
from services.core.ages import in_time
from services.core.discord_text import plain
from services.wallets.bio_proof import LONG_WAIT, bare_name
from services.wallets.wallets import BIO, TRANSACTION, ChallengeView, Verdict


def buttons(address: str, method: str) -> tuple[Button, ...]:
    """Return the button to check now, and for a transaction the one to name it."""
    check = Button(f"holdfast:check:{method}:{address}", "Check now", ButtonStyle.primary)
    return (check, Button(f"holdfast:hash:{address}", "I have the hash")) if method == TRANSACTION else (check,)


def other_way(address: str) -> Button:
    """Return the button to prove the same wallet by a transaction."""
    return Button(f"holdfast:address:{TRANSACTION}:{address}", "Use a transaction")


def confirm(asked: ChallengeView, method: str) -> Reply:
    """Ask whether the address behind a name is theirs."""
    return Reply(
        "Is this your wallet?",
        f"{plain(asked.name or '')} stands for\n`{asked.address}`\nNames can be pointed elsewhere, so it is the "
        "address that is verified.",
        "info",
        buttons=(Button(f"holdfast:address:{method}:{asked.address}", "Yes, that is mine", ButtonStyle.primary),),
    )


def challenge(asked: ChallengeView, method: str, username: str) -> Reply:
    """Say what to add or to send, whose code it is, and until when it counts."""
    whose = (
        f"This code is for **you, @{plain(bare_name(username))}**, and for nobody else: it verifies this wallet for "
        f"your Discord account alone. It counts until {on(asked.expires_at)}."
    )
    after = "I check again automatically for some minutes. **Check now** checks at once."
    steps = _send(asked) if method == TRANSACTION else _add(asked, username)
    short = asked.shortage if method == BIO else ""
    return Reply(
        f"Verify {shorten(asked.address)}",
        "\n\n".join(part for part in (steps, whose, short or after) if part),
        "info",
        buttons=(*buttons(asked.address, method), *((other_way(asked.address),) if short else ())),
    )


def _add(asked: ChallengeView, username: str) -> str:
    name = plain(bare_name(username))
    return (
        f"1. Open the OpenSea profile of `{asked.address}`.\n2. Add this to its **bio** and save:\n"
        f"```\n{asked.code}\n```\nInstead of the code, `{asked.handle_marker}` will do as well, only if **you** are "
        f"@{name}. A bio verifies no smart-contract wallet: a Safe or an ERC-4337 account sends a transaction instead."
    )


def _send(asked: ChallengeView) -> str:
    if asked.memo is not None:
        return (
            f"Send a transaction from `{asked.address}` with this **memo** (of the Memo program), signed by that "
            f"wallet:\n```\n{asked.memo}\n```"
        )
    if not asked.chains:
        return "No chain is set up for transaction proofs here. Take the bio instead."
    first = asked.chains[0]
    chains = ", ".join(f"{one.title} ({one.coin})" for one in asked.chains)
    return (
        f"Send **exactly {first.amount}** of the chain's own coin from `{asked.address}` **to itself**, on one of: "
        f"{chains}.\n```\n{first.amount}\n```\nThe amount comes back to you; you pay only the fee. If your wallet "
        f"can attach data, any amount with this data does as well:\n```\n{first.data}\n```\nA **smart-contract** "
        "wallet can do this if it is a Safe (a transaction that you execute without a relayer) or an ERC-4337 account "
        "(a UserOperation); it then counts on that chain alone. Any other contract cannot be verified: delegate it at "
        "delegate.xyz to a wallet of yours."
    )


def not_yet(verdict: Verdict, address: str, method: str) -> Reply:
    """Say why the wallet is not proved (yet)."""
    title = "Not there yet" if verdict.again else "Not verified"
    text = plain(verdict.message, 900)
    if verdict.needed:
        text += f"\n{verdict.confirmations} of {verdict.needed} confirmations."
    offered = buttons(address, method) if verdict.again else ()
    if verdict.linked is not None:
        other = Button(f"holdfast:address:{BIO}:{verdict.linked.address}", f"Verify {shorten(verdict.linked.address)}")
        offered = (*offered, other, other_way(address))
    elif method == BIO and verdict.wait >= LONG_WAIT:
        text += f"\n\nI check again automatically {in_time(verdict.wait)}."
        offered = (*offered, other_way(address))
    elif verdict.again:
        text += "\n\nI keep checking automatically for some minutes."
    return Reply(title, text, "warning", buttons=offered)


def stopped(address: str, method: str) -> Reply:
    """Say that the checks have ended."""
    where = "in the bio" if method == BIO else "on the chains"
    return Reply(
        "I stopped checking",
        f"Nothing for {shorten(address)} was found {where} within ten minutes. Your code still counts: press "
        "**Check now** whenever it is there.",
        "warning",
        buttons=buttons(address, method),
    )
