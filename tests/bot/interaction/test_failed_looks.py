"""What a re-check and /why say when not everything could be read: what is not known is never told as a no."""

from bot.messages import sentences
from services.servers.explain import MemberWhy
from services.servers.recheck_report import compare
from tests.bot.test_sentences import role


def test_a_look_that_could_not_read_everything_says_so_beside_what_was_known_before() -> None:
    seen = MemberWhy("1", "carol", (role("Gold", held=False), role("Blue", held=True)), protected=False)
    reply = sentences.outcome(compare(seen, frozenset({"Blue"}), "Base: no *answer*", settled=True), "Looked again")
    assert [name for name, _ in reply.fields] == ["Stays", "Not yours", "Still under way"]
    assert reply.fields[-1][1] == (
        "Not everything could be read just now (Base: no \\*answer\\*), so some of this is from an earlier look. I "
        "look again automatically."
    )
    assert reply.tone == "warning"


def test_a_look_that_read_everything_says_nothing_of_the_kind() -> None:
    seen = MemberWhy("1", "carol", (role("Gold", held=False),), protected=False)
    reply = sentences.outcome(compare(seen, frozenset(), None, settled=True), "Looked again")
    assert [name for name, _ in reply.fields] == ["Not yours"]
    assert reply.tone == "good"


def test_a_look_says_once_why_every_role_is_unknown() -> None:
    seen = MemberWhy("1", "carol", (role("Gold", held=False, outcome="unknown"),), protected=False)
    reply = sentences.outcome(compare(seen, frozenset(), "Base: no answer", settled=True), "Looked again")
    assert [name for name, _ in reply.fields] == ["Unknown"]


def test_roles_that_are_explained_while_a_chain_does_not_answer_are_from_an_earlier_look() -> None:
    seen = MemberWhy("1", "carol", (role("Gold", held=False),), protected=False)
    told = (
        "Not everything could be read just now (Base: no \\*answer\\*), so some of this is from an earlier look. I "
        "look again automatically."
    )
    assert sentences.why(seen, doubt="Base: no *answer*").text == told
    assert sentences.why(seen, "Blue", doubt="Base: no *answer*").text.startswith(f"{told}\n\nNo rule here")
    assert sentences.why(seen, doubt=None).text == ""


def test_only_roles_that_an_answer_names_as_removed_need_no_notice_about_that() -> None:
    names = [f"Role {number:02}" for number in range(40)]
    seen = MemberWhy("1", "carol", tuple(role(name, held=False) for name in names), protected=False)
    reply = sentences.outcome(compare(seen, frozenset(names), None, settled=True), "Looked again")
    ((_, told),) = reply.fields
    assert reply.taken == {name for name in names if name in told}
    assert "more" in told
