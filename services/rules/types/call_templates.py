"""View calls that communities often ask for, as starting points: functions' names vary from contract to contract."""

from dataclasses import dataclass

from locales import N_
from services.rules.types.view_call import AT_LEAST, EXACTLY


@dataclass(frozen=True, slots=True)
class CallTemplate:
    """One template: its label in the form, and what it fills in; without a `contract`, the admin enters one."""

    key: str
    label: str
    """A text of the catalogue."""
    function: str
    args: tuple[str, ...] = ("{wallet}",)
    path: str = ""
    compare: str = AT_LEAST
    value: str = "1"
    chain: str = ""
    contract: str = ""


TEMPLATES = (
    CallTemplate(
        "staked-number", N_("Staked tokens (the function returns a number)"),
        "balanceOf(address) view returns (uint256)",
    ),
    CallTemplate(
        "staked-list", N_("Staked tokens (the function returns a list of IDs)"),
        "tokensOfOwner(address) view returns (uint256[])", path="length",
    ),
    CallTemplate(
        "staked-struct", N_("Stake in a pool (the function returns a struct)"),
        "userInfo(uint256,address) view returns (uint256,uint256)", args=("0", "{wallet}"), path="0",
    ),
    CallTemplate(
        "unlock", N_("Unlock membership"), "getHasValidKey(address) view returns (bool)", compare=EXACTLY, value="true"
    ),
    CallTemplate(
        "hats", N_("Hats: wears a hat"), "isWearerOfHat(address,uint256) view returns (bool)", args=("{wallet}", "1"),
        compare=EXACTLY, value="true",
    ),
    # The address: https://docs.farcaster.xyz/reference/contracts/deployments
    CallTemplate(
        "farcaster", N_("Farcaster account"), "idOf(address) view returns (uint256)", chain="optimism",
        contract="0x00000000fc6c5f01fc30151999387bb99a9f489b",
    ),
    CallTemplate(
        "balance-of-id", N_("Balance of one token ID"), "balanceOf(address,uint256) view returns (uint256)",
        args=("{wallet}", "1"),
    ),
    CallTemplate(
        "votes", N_("Voting power"), "getVotes(address) view returns (uint256)", value="1000000000000000000"
    ),
    CallTemplate(
        "vault-assets", N_("Deposit in a vault (ERC-4626)"), "maxWithdraw(address) view returns (uint256)",
        value="1000000000000000000",
    ),
    CallTemplate(
        "vesting", N_("Vesting schedules"), "getVestingSchedulesCountByBeneficiary(address) view returns (uint256)"
    ),
)  # fmt: skip
"""The templates in the order in which the form offers them."""


def template(key: str) -> CallTemplate | None:
    """Return the template with this key, or None."""
    return next((one for one in TEMPLATES if one.key == key), None)
