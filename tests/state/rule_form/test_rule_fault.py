"""A refused rule form leads to the field that has to be changed."""

from state.rule_form.rule_form import RuleFormState
from tests.state.conftest import Tab
from tests.state.rule_form.filling import CATS, fill
from tests.state.rule_form.filling import form as form


async def test_a_refusal_names_the_control_to_change_until_something_is_changed(form: RuleFormState) -> None:
    async def refused() -> str:
        fault = form._first_fault()
        await form._refuse(fault.text, fault.field)
        return form.fault_field

    assert await refused() == "contractAddress"
    fill(form, CATS, type="trait")
    assert (form.fault_field, await refused()) == ("", "traitType")
    await Tab.run(form.choose_trait_type(form.open, "Fur"))
    assert await refused() == "traitValue"
    fill(form, CATS, type="token_id")
    assert await refused() == "tokenEntry"
    fill(form, CATS)
    assert await refused() == "roleId"
    await form.choose_role("77")
    await form.choose_removal("grace")
    await form.enter_grace(0)
    assert await refused() == "graceHours"
    await form.enter_grace(1)
    await form.add_tier()
    assert await refused() == "maxTokens"
    await form.enter_max_tokens(form.open, 4)
    assert await refused() == "tier-2-least"
    await form.enter_tier(2, "least", "5")
    assert await refused() == "tier-2-role"
    await form.enter_tier(2, "most", "x")
    assert await refused() == "tier-2-most"
    before = form.refusals
    await refused()
    assert form.refusals == before + 1, "the same refusal shows the control again"
