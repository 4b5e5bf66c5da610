"""What the providers' last answers mean for a server: which work, which fail, and what waits for them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from gateways.transport import provider_reports
from locales import N_, _, ngettext, number, sentences
from locales.stored_texts import said
from models import ProviderState
from services.core.addresses import shorten
from services.core.relative_times import length
from services.health.provider_records import silent_after
from services.health.views import BAD, GOOD, OFF, WARNING, LagHealth, ProviderHealth
from services.rules import single_source
from services.triggers.chain_cursor import COINS, WALLETS, FollowView
from services.triggers.quarantine import Quarantined
from settings import settings

UNKNOWN = "unknown"
_WAIT = N_(
    "Nothing for you to do: it continues once the provider answers. If it lasts, tell the person who runs the bot."
)
SAYS = {
    provider_reports.STALE: N_("{name} answers with an old block."),
    provider_reports.DOWN: N_("{name} does not answer."),
    provider_reports.BUSY: N_("{name} asks us to wait."),
    provider_reports.CONFUSED: N_("{name} sends answers that make no sense."),
    provider_reports.REFUSED: N_("{name} does not accept our key."),
}
"""The sentence about a provider, by its state."""
QUARANTINE_REASON = N_("it writes more logs in a block than nodes give. The daily sweep checks its members meanwhile.")
BOT_SILENT_AFTER = timedelta(seconds=60)
"""Age of the bot's last report at which it counts as not running."""
_LAGS_AFTER = timedelta(minutes=5)
_LOOKS_MISSED = 3
"""The number of pauses between polls that may pass before a chain counts as not read."""

States = Mapping[str, ProviderState]


def providers(outside: Gateways, states: States, used: frozenset[str], now: datetime) -> tuple[ProviderHealth, ...]:
    """Return Discord, OpenSea and every chain's nodes; those that the server's rules depend on come first."""
    shown = [
        _service(
            states.get(provider_reports.DISCORD), provider_reports.DISCORD, "Discord", used=True, bad=BAD,
            effect=_("No role can be given or taken until it answers; nothing is lost meanwhile."),
        ),
        _service(
            states.get(provider_reports.OPENSEA), provider_reports.OPENSEA, "OpenSea", used=True, bad=WARNING,
            effect=_("Wallets cannot be verified by a bio until it answers. Roles do not depend on it."),
        ),
    ]  # fmt: skip
    for chain in sorted({**dict.fromkeys(CHAINS), **dict.fromkeys(used)}, key=lambda key: key not in used):
        shown += chain_nodes(outside, states, chain, chain in used, now)
    return tuple(shown)


def _service(
    row: ProviderState | None, provider: str, name: str, *, used: bool, bad: str, effect: str
) -> ProviderHealth:
    answers = row.state if row else UNKNOWN
    if row is None:
        state, text, mend = OFF, _("{name} has not been asked yet.").format(name=name), None
    elif answers == provider_reports.OK:
        state, text, mend = GOOD, _("{name} answers.").format(name=name), None
    else:
        state, text, mend = bad, f"{_(SAYS[answers]).format(name=name)} {effect}", _(_WAIT)
    return ProviderHealth(
        state=state, text=text, mend=mend, provider=provider, name=name, kind="service", chain=None, answers=answers,
        since=row.since if row else None, checked_at=row.checked_at if row else None, block=None, age=None,
        reason=row.reason if row and answers != provider_reports.OK else None, used=used,
    )  # fmt: skip


def answers_of(row: ProviderState | None, chain: str, now: datetime) -> str:
    """Return the present state of a node of the chain; unknown if the last report is too old."""
    return UNKNOWN if row is None or now - row.checked_at > silent_after(chain) else row.state


def chain_nodes(outside: Gateways, states: States, chain: str, used: bool, now: datetime) -> list[ProviderHealth]:
    """Return a chain's nodes in the order of the settings, or one line if none is configured."""
    title, count = CHAINS[chain].title, outside.chains.endpoints(chain)
    if count == 0:
        text = _("No node is set for {chain}, so rules on it are off.").format(chain=title)
        mend = _("The person who runs the bot can set nodes for {chain}.").format(chain=title) if used else None
        state = BAD if used else OFF
        return [
            ProviderHealth(
                state=state, text=text, mend=mend, provider=chain, name=title, kind="chain", chain=chain, answers=OFF,
                since=None, checked_at=None, block=None, age=None, reason=None, used=used,
            )
        ]  # fmt: skip
    names = [provider_reports.node(chain, place) for place in range(count)]
    well = sum(answers_of(states.get(name), chain, now) == provider_reports.OK for name in names)
    return [_node(states.get(name), chain, place, count, well, used, now) for place, name in enumerate(names)]


def unreadable(states: States, chains: Iterable[str], now: datetime) -> frozenset[str]:
    """Return those of the chains of which no node works, as far as any of their nodes is known to have been asked."""
    found: set[str] = set()
    for chain in chains:
        names = (provider_reports.node(chain, place) for place in range(len(settings().rpc.get(chain, ()))))
        answers = {answers_of(states.get(name), chain, now) for name in names}
        if provider_reports.OK not in answers and answers - {UNKNOWN}:
            found.add(chain)
    return frozenset(found)


def consequence(title: str, count: int, well: int) -> str:
    """Return the sentence about a chain of which only `well` of `count` nodes work."""
    if well == 0:
        return _(
            "Nothing is given or taken on {chain} until a node answers: what cannot be read is unknown, and unknown "
            "changes nothing."
        ).format(chain=title)
    if count > 1 and well == 1:
        return _(
            "Removals on {chain} are paused: taking a role needs a second reading from another node. Roles are still "
            "given."
        ).format(chain=title)
    return _("The other nodes of {chain} do its work.").format(chain=title)


def _node(
    row: ProviderState | None, chain: str, place: int, count: int, well: int, used: bool, now: datetime
) -> ProviderHealth:
    name = _("{chain} node {number}").format(chain=CHAINS[chain].title, number=place + 1)
    answers = answers_of(row, chain, now)
    age = None if row is None or row.block_time is None else max(0, int((now - row.block_time).total_seconds()))
    mend = None
    if answers == provider_reports.OK and row is not None:
        state, text = GOOD, _("{name} answers.").format(name=name)
        if row.block:
            text = _("{name} answers; its newest block is {block}.").format(name=name, block=number(row.block))
        if used and (alone := single_source.one_node(chain)) is not None:
            state, text, mend = WARNING, f"{text} {alone[0]}", alone[1]
    elif answers == UNKNOWN:
        state = WARNING if used else OFF
        text = _("{name} has not been asked yet.").format(name=name)
        if row is not None:
            silent = length((now - row.checked_at).total_seconds())
            text = _("{name} was last heard from {length} ago.").format(name=name, length=silent)
        mend = _("If this stays so, the background jobs do not run: tell the person who runs the bot.")
    else:
        state = (BAD if well == 0 else WARNING) if used else OFF
        told = _(SAYS[answers]).format(name=name)
        if answers == provider_reports.STALE and age is not None:
            # Translators: {length} is such as "3 minutes".
            told = _("{name} answers with an old block ({length} old).").format(name=name, length=length(age))
        text, mend = f"{told} {consequence(CHAINS[chain].title, count, well)}", _(_WAIT)
    return ProviderHealth(
        state=state, text=text, mend=mend, provider=provider_reports.node(chain, place), name=name, kind="node",
        chain=chain, answers=answers, since=row.since if row else None, checked_at=row.checked_at if row else None,
        block=row.block if row else None, age=age,
        reason=row.reason if row and answers != provider_reports.OK else None, used=used,
    )  # fmt: skip


def left_to_sweeps(used: Iterable[str]) -> tuple[LagHealth, ...]:
    """Return a line for each of these chains that the settings leave to sweeps."""
    return tuple(
        LagHealth(
            state=OFF,
            text=_(
                "{chain} is not followed, as the person who runs the bot has set it: the daily sweep notices purchases "
                "and sales there."
            ).format(chain=CHAINS[chain].title),
            chain=chain, kind="", block=0, behind=0, seconds=0,
        )
        for chain in sorted(used)
        if settings().pause_between_looks(chain) is None
    )  # fmt: skip


def bot_is_silent(row: ProviderState, moment: datetime) -> bool:
    """Return whether the bot's last report is so old that it counts as not running."""
    return moment - row.checked_at > BOT_SILENT_AFTER


def late_after(chain: str, least: timedelta = _LAGS_AFTER) -> timedelta:
    """Return the time without a poll after which a chain counts as not read: `least`, or longer if polls are rare."""
    return max(least, timedelta(seconds=_LOOKS_MISSED * (settings().pause_between_looks(chain) or 0.0)))


def lag(
    followed: Sequence[FollowView],
    now: datetime,
    quarantined: Sequence[Quarantined] = (),
    *,
    unreadable: frozenset[str] = frozenset(),
) -> tuple[LagHealth, ...]:
    """Return how far each followed chain is behind its nodes' newest block.

    `quarantined` are contracts in rules that are not followed right now. A chain in `unreadable` is bad, and its
    text does not mention the newest block, which nobody knows.
    """
    found: list[LagHealth] = []
    for one in followed:
        title = CHAINS[one.chain].title
        seconds = max(0, int((now - one.updated_at).total_seconds()))
        late = now - one.updated_at > late_after(one.chain)
        cut_off = one.chain in unreadable
        told = [_cut_off(title, one.block) if cut_off else _followed(one.kind, title, one.block, one.behind)]
        if one.slices > 1:
            turns = _("There are so many wallets that they are read in {count} turns, so a purchase shows later.")
            told.append(turns.format(count=one.slices))
        if one.fault:
            told.append(_("The last look failed: {reason}.").format(reason=said(one.fault)))
        if late:
            silent = _("Nothing was read for {length}; the daily sweep notices sales there meanwhile.")
            if cut_off:  # the sweep asks the same nodes
                silent = _("Nothing was read for {length}.")
            told.append(silent.format(length=length(seconds)))
        away = [rest for rest in quarantined if rest.chain == one.chain] if one.kind not in {WALLETS, COINS} else []
        for rest in away:
            left = length((rest.until - now).total_seconds())
            why = _("{contract} is not followed for {length} more: {reason}")
            told.append(why.format(contract=shorten(rest.contract), length=left, reason=_(QUARANTINE_REASON)))
        state = BAD if cut_off else WARNING if late or away else GOOD
        text = sentences(*told)
        found.append(
            LagHealth(
                state=state,
                text=text,
                chain=one.chain,
                kind=one.kind,
                block=one.block,
                behind=one.behind,
                seconds=seconds,
            )
        )
    return tuple(found)


def _cut_off(chain: str, block: int) -> str:
    text = _(
        "{chain} was last read up to block {block}. None of its nodes answers as it should, so newer blocks cannot be "
        "read."
    )
    return text.format(chain=chain, block=number(block))


def _followed(kind: str, chain: str, block: int, behind: int) -> str:
    if kind == WALLETS:
        text = ngettext(
            "For rules about any NFT, members' wallets on {chain} are followed up to block {block}, {count} block "
            "behind its newest.",
            "For rules about any NFT, members' wallets on {chain} are followed up to block {block}, {count} blocks "
            "behind its newest.",
            behind,
        )
    elif kind == COINS:
        text = ngettext(
            "For rules about coins, members' wallets on {chain} are followed up to block {block}, {count} block "
            "behind its newest.",
            "For rules about coins, members' wallets on {chain} are followed up to block {block}, {count} blocks "
            "behind its newest.",
            behind,
        )
    else:
        text = ngettext(
            "{chain} is followed up to block {block}, {count} block behind its newest.",
            "{chain} is followed up to block {block}, {count} blocks behind its newest.",
            behind,
        )
    return text.format(chain=chain, block=number(block), count=behind)
