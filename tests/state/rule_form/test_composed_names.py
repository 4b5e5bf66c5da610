"""The automatic name of a rule of several conditions, next to its plain words."""

from services.rules.expression import Not, parse
from state.rule_form.conditions import ROOT
from state.rule_form.rule_form import RuleFormState
from tests.state.rule_form.filling import CATS, FOXES, fill, leaf
from tests.state.rule_form.filling import form as form


async def test_the_name_says_how_many_conditions_must_hold_as_the_plain_words_do(form: RuleFormState) -> None:
    fill(form, CATS)
    await form.add_condition(ROOT)
    fill(form, FOXES, "polygon")
    assert form.rule_name == "Cats and Foxes"
    for mode, name, words in (
        (
            "any",
            "Cats or Foxes",
            ["Any of:", "At least 1 token of Cats on Base", "At least 1 token of Foxes on Polygon"],
        ),
        (
            "some",
            "Cats or Foxes",
            ["Any of:", "At least 1 token of Cats on Base", "At least 1 token of Foxes on Polygon"],
        ),
        ("none", "None of: Cats, Foxes", ["All of:", "No token of Cats on Base", "No token of Foxes on Polygon"]),
    ):
        await form.choose_mode(ROOT, mode)
        assert (form.rule_name, [line.text for line in form.lines]) == (name, words)
    await form.remove_condition(form.open)
    assert (form.rule_name, [line.text for line in form.lines]) == ("None of: Cats", ["No token of Cats on Base"])
    assert parse(form._draft(1).expression) == Not(leaf(CATS)), "the rule is what the words say"
