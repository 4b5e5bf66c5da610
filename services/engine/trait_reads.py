"""Read the traits on which answers depend, and read them again from other sources before a role is taken."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from gateways import Gateways
from models import now
from services.collections import trait_sources
from services.collections.trait_match import OF_INDEX, TokenTraits, is_link
from services.core.queue import AGAIN
from services.engine.cases import Case
from services.engine.reconcile_outcome import BatchOutcome, ServerChain
from services.holdings import confirmation, evaluate, trait_choice
from services.holdings.evaluate import Answers
from services.holdings.wallet_shares import Delegated
from services.rules.expression import Requirement

MOST_TOKENS_READ = 600
"""The most tokens whose traits are fetched in one reconcile; others stay unknown, and their members are queued again
soon."""
MOST_ASKED_AGAIN = 6
"""How many reconciles wait for a failing source of traits, about five minutes in all."""
LATELY = timedelta(minutes=10)
"""The age up to which a stored reading of a linked document may be the second one."""


async def read(
    outside: Gateways, done: BatchOutcome, cases: Sequence[Case], answers: Mapping[ServerChain, Answers]
) -> None:
    """Read the traits of the held tokens on which an answer still depends.

    For a member who waits for a role, a no from one source is not enough, because another source may know more. While
    that source cannot be read, the answer is unknown for at most MOST_ASKED_AGAIN reconciles.
    """
    tokens = _unread(cases, answers)
    if tokens:
        found = await trait_sources.fetch(outside, trait_choice.choose(tokens, MOST_TOKENS_READ))
        trait_choice.remember(found)
        _learn(done, answers, found)
    asking = [case for case in cases if case.claim.priority >= AGAIN]
    known = {
        token: told
        for token in _denied(asking, answers)
        if (told := _traits_in(answers, token)) is not None and trait_sources.sources_on(outside, token[0]) > 1
    }
    if known:
        patient = _denied([case for case in asking if case.claim.attempts < MOST_ASKED_AGAIN], answers)
        asked = trait_choice.choose({"all": known}, MOST_TOKENS_READ)
        apart_from = {token: known[token].sources for token in asked}
        for token, other in (await trait_sources.fetch(outside, asked, apart_from=apart_from)).items():
            waits = isinstance(other, str) and token in patient
            _learn(done, answers, {token: other if waits else _with(known[token], other)})


async def read_again(
    outside: Gateways,
    done: BatchOutcome,
    cases: Sequence[Case],
    confirmed: Mapping[ServerChain, Answers],
    answers: Mapping[ServerChain, Answers],
) -> None:
    """Read traits a second time, from other sources than the first time if there are any.

    Traits that came from our own table are read from every source. Of more tokens than one read has room for, those
    that an earlier one has read from two sources are not read again.
    """
    wanted = _unread(cases, confirmed)
    if len(set[trait_sources.TokenKey]().union(*wanted.values())) > MOST_TOKENS_READ:
        _learn(done, confirmed, _of_two_sources(wanted, answers, _apart_from_first(done, cases)))
        wanted = _unread(cases, confirmed)
    again, both = list[trait_sources.TokenKey](), list[trait_sources.TokenKey]()
    known = dict[trait_sources.TokenKey, TokenTraits | str]()
    apart_from = dict[trait_sources.TokenKey, frozenset[str]]()
    for token in trait_choice.choose(wanted, MOST_TOKENS_READ):
        told = done.traits.get(token)
        if not isinstance(told, TokenTraits) or (len(told.sources) == 1 and not told.traits):
            both.append(token)  # an empty list is confirmed only by another empty one
        elif len(told.sources) > 1:
            known[token] = told
        else:
            again.append(token)
            if trait_sources.sources_on(outside, token[0]) > 1:
                apart_from[token] = told.sources
    _learn(done, confirmed, known)
    if both:
        _learn(done, confirmed, await _of_every_source(outside, both))
    if again:
        found = await trait_sources.fetch(outside, again, apart_from=apart_from)
        first = {token: told for token in again if isinstance(told := done.traits[token], TokenTraits)}
        joined = {token: _with(told, found[token]) for token, told in first.items()}
        # With the first list too: of several wanted traits, each source may deny one that the other shows.
        _learn(done, confirmed, found | {token: told for token, told in joined.items() if told.also is not None})
        done.traits.update(joined)


async def _of_every_source(
    outside: Gateways, tokens: Sequence[trait_sources.TokenKey]
) -> dict[trait_sources.TokenKey, TokenTraits | str]:
    """Read traits from every source. Where an index read them, another index is asked as well."""
    found = await trait_sources.fetch(outside, tokens, every_source=True)
    indexed = {
        token: told
        for token, told in found.items()
        if isinstance(told, TokenTraits) and len(told.sources) == 1 and OF_INDEX in told.source
        and trait_sources.sources_on(outside, token[0]) > 1
    }  # fmt: skip
    if indexed:
        apart_from = {token: told.sources for token, told in indexed.items()}
        others = await trait_sources.fetch(outside, indexed, apart_from=apart_from)
        found |= {token: _with(told, others[token]) for token, told in indexed.items()}
    return found


def _apart_from_first(done: BatchOutcome, cases: Sequence[Case]) -> dict[trait_sources.TokenKey, datetime]:
    """Return when a reading of a token's linked document is first far enough from the answer that it would confirm.

    Tokens on which no earlier reconcile's answer depends are left out: nothing can be confirmed by them yet.
    """
    found, losing = dict[trait_sources.TokenKey, datetime](), set(map(id, cases))
    for item in done.outcomes:
        if id(item.case) not in losing:
            continue
        before = [confirmation.parsed(grant.first_no) for grant in item.case.grants if grant.first_no]
        made = [one for readings in item.readings.values() for one in readings] if before else []
        for reading in (one for one in made if one.requirement.kind.names_trait):
            leaf, question = reading.requirement, confirmation.question_of(reading)
            for at in (earlier[question].at for earlier in before if question in earlier):
                for token in ((leaf.chain, leaf.contract, token_id) for token_id in reading.judged):
                    found[token] = max(at + confirmation.APART, found.get(token, at))
    return found


def _of_two_sources(
    wanted: Mapping[Hashable, set[trait_sources.TokenKey]],
    answers: Mapping[ServerChain, Answers],
    apart: Mapping[trait_sources.TokenKey, datetime],
) -> dict[trait_sources.TokenKey, TokenTraits | str]:
    """Return the traits in the answers that two sources gave, of the wanted tokens.

    A document to which two indexes only link counts if it was read LATELY and not before its time in `apart`: it must
    not confirm itself by a stored copy.
    """
    tokens, since = set[trait_sources.TokenKey]().union(*wanted.values()), now() - LATELY
    return {
        token: said
        for told in answers.values()
        for token, said in told.traits.items()
        if token in tokens and isinstance(said, TokenTraits) and len(said.sources) > 1
        and (
            not all(map(is_link, said.sources))
            or (token in apart and said.read_at > since and said.read_at >= apart[token])
        )
    }  # fmt: skip


def _with(first: TokenTraits, other: TokenTraits | str) -> TokenTraits:
    """Return one source's traits, with another source's list added if that list is whole."""
    whole = isinstance(other, TokenTraits) and other.whole and other.source != first.source
    return replace(first, also=other) if whole else first


def _learn(
    done: BatchOutcome,
    answers: Mapping[ServerChain, Answers],
    found: Mapping[trait_sources.TokenKey, TokenTraits | str],
) -> None:
    done.traits.update(found)
    for (_, chain), told in answers.items():
        told.traits.update({token: said for token, said in found.items() if token[0] == chain})


def _traits_in(answers: Mapping[ServerChain, Answers], token: trait_sources.TokenKey) -> TokenTraits | None:
    """Return the traits of a token in the answers, if they come from one source."""
    for (_, chain), told in answers.items():
        if chain == token[0] and isinstance(said := told.traits.get(token), TokenTraits):
            return said if len(said.sources) == 1 and said.whole else None
    return None


def _denied(cases: Sequence[Case], answers: Mapping[ServerChain, Answers]) -> set[trait_sources.TokenKey]:
    """Return the held tokens whose traits make a requirement's answer no."""
    return {
        token
        for case, leaf, vaults in _trait_leaves(cases)
        for token in evaluate.denied(leaf, case.wallets, answers.get((case.claim.server_id, leaf.chain)), vaults)
    }


def _unread(
    cases: Sequence[Case], answers: Mapping[ServerChain, Answers]
) -> dict[Hashable, set[trait_sources.TokenKey]]:
    """Return, by member, the held tokens on whose traits an answer still depends."""
    found: dict[Hashable, set[trait_sources.TokenKey]] = {}
    for case, leaf, vaults in _trait_leaves(cases):
        told = answers.get((case.claim.server_id, leaf.chain))
        tokens = set(evaluate.unread(leaf, case.wallets, told, vaults))
        if tokens:
            found.setdefault(case.who, set()).update(tokens)
    return found


def _trait_leaves(cases: Sequence[Case]) -> Iterator[tuple[Case, Requirement, Delegated | None]]:
    """Yield the conditions on traits that decide about a member, with the vaults that count for each."""
    asking = {case.claim.server_id for case in cases if any(wants.with_traits for wants in case.wants.values())}
    for case in (one for one in cases if one.claim.server_id in asking):
        for rule in (one for one in case.rules if one.decides):
            for leaf, wanted in rule.leaves:
                if leaf.kind.names_trait:
                    yield case, leaf, case.delegated_by(rule, wanted=wanted)
