"""Texts for proving a wallet: what a member has to show, and the result of a check.

`services/wallets/bio_proof.py` has the sentences on why a bio does not prove a wallet; `not_yet` shows them with
buttons.
"""

from nextcord import ButtonStyle

from bot.messages.reply import Button, Reply
from bot.messages.sentences import LONGEST_SENTENCE, VERIFY, on
from locales import _, ngettext, series
from services.core.addresses import shorten
from services.core.discord_text import plain
from services.core.relative_times import in_time
from services.wallets import bio_proof
from services.wallets.bio_proof import LONG_WAIT, bare_name
from services.wallets.wallets import BIO, TRANSACTION, ChallengeView, Verdict


def buttons(address: str, method: str) -> tuple[Button, ...]:
    """Return the button to check now, and for a transaction the button to enter its hash."""
    check = Button(f"holdfast:check:{method}:{address}", _("Check now"), ButtonStyle.primary)
    return (check, Button(f"holdfast:hash:{address}", _("I have the hash"))) if method == TRANSACTION else (check,)


def other_way(address: str) -> Button:
    """Return the button to prove the same wallet by a transaction."""
    return Button(f"holdfast:address:{TRANSACTION}:{address}", _("Use Transaction Proof"))


def refused(message: str) -> Reply:
    """Say why the entered address is refused, and offer the form again, which Discord closes when it is sent."""
    again = Button(VERIFY, _("Try Again"), ButtonStyle.primary)
    return Reply(_("That did not work"), plain(message, LONGEST_SENTENCE), "warning", buttons=(again,), failed=True)


def confirm(asked: ChallengeView, method: str) -> Reply:
    """Ask whether the address behind a name is the member's own."""
    return Reply(
        _("Is this your wallet?"),
        _(
            "{name} stands for\n`{address}`\nNames can be pointed elsewhere, so it is the address that is verified."
        ).format(name=plain(asked.name or ""), address=asked.address),
        "info",
        buttons=(Button(f"holdfast:address:{method}:{asked.address}", _("Yes, that is mine"), ButtonStyle.primary),),
    )


def without_profile(address: str) -> Reply:
    """Say that no bio verifies this wallet, and offer the other way."""
    return Reply(_("Not verified"), _(bio_proof.ON_SOLANA), "warning", buttons=(other_way(address),))


def no_longer_counts() -> str:
    """Say that an earlier challenge has ended; the new one follows."""
    return _("What you were shown before no longer counts. From now on, this does:")


def challenge(asked: ChallengeView, method: str, username: str, note: str = "") -> Reply:
    """Say what to add or to send, for whom the code is, and until when it counts; `note` comes first."""
    # Translators: {time} is a date and a time, which Discord writes.
    whose = _(
        "This code is for **you, @{name}**, and for nobody else: it verifies this wallet for your Discord account "
        "alone. It counts until {time}."
    ).format(name=plain(bare_name(username)), time=on(asked.expires_at))
    after = _("I check again automatically for some minutes. **Check now** checks at once.")
    steps = _send(asked) if method == TRANSACTION else _add(asked, username)
    short = asked.shortage if method == BIO else ""
    return Reply(
        _("Verify {wallet}").format(wallet=shorten(asked.address)),
        "\n\n".join(part for part in (note, steps, whose, short or after) if part),
        "info",
        buttons=(*buttons(asked.address, method), *((other_way(asked.address),) if short else ())),
    )


def _add(asked: ChallengeView, username: str) -> str:
    name = plain(bare_name(username))
    return _(
        "1. Open the OpenSea profile of `{address}`.\n2. Add this to its **bio** and save:\n```\n{code}\n```\n"
        "Instead of the code, `{marker}` will do as well, only if **you** are @{name}. A bio verifies no "
        "smart-contract wallet: a Safe or an ERC-4337 account sends a transaction instead."
    ).format(address=asked.address, code=asked.code, marker=asked.handle_marker, name=name)


def _send(asked: ChallengeView) -> str:
    if asked.memo is not None:
        return _(
            "Send a transaction from `{address}` with this **memo** (of the Memo program), signed by that wallet:\n"
            "```\n{memo}\n```"
        ).format(address=asked.address, memo=asked.memo)
    if not asked.chains:
        return _("No chain is set up for transaction proofs here. Use the OpenSea bio instead.")
    first = asked.chains[0]
    chains = series(f"{one.title} ({one.coin})" for one in asked.chains)
    return _(
        "Send **exactly {amount}** of the chain's own coin from `{address}` **to itself**, on one of: {chains}.\n"
        "```\n{amount}\n```\nThe amount comes back to you; you pay only the fee. If your wallet can attach data, any "
        "amount with this data does as well:\n```\n{data}\n```\nA **smart-contract** wallet can do this if it is a "
        "Safe (a transaction that you execute without a relayer) or an ERC-4337 account (a UserOperation); it then "
        "counts on that chain alone. Any other contract cannot be verified: delegate it at delegate.xyz to a wallet "
        "of yours."
    ).format(amount=first.amount, address=asked.address, chains=chains, data=first.data)


def not_yet(verdict: Verdict, address: str, method: str, *, pasted: bool = False) -> Reply:
    """Say why the wallet is not proved, or not yet; instead of a `pasted` transaction, another one can be pasted."""
    title = _("Not there yet") if verdict.again else _("Not verified")
    text = plain(verdict.message, 900)
    if verdict.needed:
        said = ngettext("{count} of {needed} confirmation.", "{count} of {needed} confirmations.", verdict.needed)
        text += f"\n{said.format(count=verdict.confirmations, needed=verdict.needed)}"
    offered = buttons(address, method) if verdict.again or pasted else ()
    if verdict.linked is not None:
        label = _("Verify {wallet}").format(wallet=shorten(verdict.linked.address))
        other = Button(f"holdfast:address:{BIO}:{verdict.linked.address}", label)
        offered = (*offered, other, other_way(address))
    elif verdict.by_transaction:
        offered = (*offered, other_way(address))
    elif method == BIO and verdict.wait >= LONG_WAIT:
        # Translators: {time} is such as "in 12 minutes".
        again = _("I check again automatically {time}.").format(time=in_time(verdict.wait))
        text += f"\n\n{again}"
        offered = (*offered, other_way(address))
    elif verdict.again:
        text += "\n\n" + _("I keep checking automatically for some minutes.")
    return Reply(title, text, "warning", buttons=offered)


def interrupted(address: str, method: str) -> Reply:
    """Say that the checks have ended because the bot stops."""
    return Reply(
        _("I stopped checking"),
        _(
            "I am being restarted and no longer check for {wallet} automatically. Your code still counts: press "
            "**Check now** in a minute."
        ).format(wallet=shorten(address)),
        "warning",
        buttons=buttons(address, method),
    )


def stopped(address: str, method: str) -> Reply:
    """Say that the checks have ended."""
    in_bio = _(
        "Nothing for {wallet} was found in the bio within ten minutes. Your code still counts: press **Check now** "
        "whenever it is there."
    )
    on_chains = _(
        "Nothing for {wallet} was found on the chains within ten minutes. Your code still counts: press "
        "**Check now** whenever it is there."
    )
    return Reply(
        _("I stopped checking"),
        (in_bio if method == BIO else on_chains).format(wallet=shorten(address)),
        "warning",
        buttons=buttons(address, method),
    )
