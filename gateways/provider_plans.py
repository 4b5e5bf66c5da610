"""The plans of providers: what a call costs, what a day may cost, and what is refused; each with its public page.

The providers change these numbers. None of the plans was tested with a real account.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Plan:
    """One plan: its allowance in `unit`s for a period of `days` (None: limited only by its price).

    `prices` are units for each call by method, `otherwise` those of every other method, `a_batch` those of a batch
    itself. `log_blocks` is the number of blocks that one `eth_getLogs` may span, None where it is unlimited. `dollars`
    is the price of a million units beyond the allowance.
    """

    key: str
    title: str
    unit: str
    allowance: int | None
    days: int
    a_second: str
    log_blocks: int | None
    otherwise: int
    prices: Mapping[str, int] = field(default_factory=dict[str, int])
    a_batch: int = 0
    dollars: float = 0.0
    price: str = "free"
    page: str = ""

    @property
    def provider(self) -> str:
        """The provider's name."""
        return self.title.split()[0]

    @property
    def a_day(self) -> float | None:
        """The allowance for one day."""
        return None if self.allowance is None else self.allowance / self.days

    def cost(self, calls: Mapping[str, float]) -> float:
        """Return what these calls cost; "batch" counts batches."""
        return sum(
            count * (self.a_batch if method == "batch" else self.prices.get(method, self.otherwise))
            for method, count in calls.items()
        )


_ALCHEMY = {
    "eth_chainId": 0, "eth_blockNumber": 10, "eth_getBlockByNumber": 20, "eth_getTransactionCount": 20, "eth_call": 26,
    "eth_getLogs": 60,
}  # fmt: skip
_INFURA = {"eth_chainId": 5, "eth_getLogs": 255}
_HELIUS = {
    "getBlockTime": 10, "getAsset": 10, "getAssetBatch": 10, "getAssetsByOwner": 10, "getAssetsByGroup": 10,
    "getSignaturesForAddress": 10, "getTransaction": 10,
}  # fmt: skip
_CU, _CREDITS = "CU", "credits"
_ALCHEMY_PAGE = "https://www.alchemy.com/docs/reference/compute-unit-costs"
_INFURA_PAGE = "https://docs.metamask.io/services/get-started/pricing"
_QUICKNODE_PAGE = "https://www.quicknode.com/pricing"
_HELIUS_PAGE = "https://www.helius.dev/docs/billing/plans"

ALCHEMY = Plan(
    "alchemy", "Alchemy Free", _CU, 30_000_000, 30, "500 CU", 10, 20, _ALCHEMY, page=_ALCHEMY_PAGE,
)  # fmt: skip
INFURA = Plan("infura", "Infura Free", _CREDITS, 3_000_000, 1, "500 credits", None, 80, _INFURA, 1, page=_INFURA_PAGE)
QUICKNODE = Plan(
    "quicknode", "QuickNode free trial", _CREDITS, 10_000_000, 30, "15 requests", 5, 20, page=_QUICKNODE_PAGE
)
ALCHEMY_PAID = Plan(
    "alchemy-paid", "Alchemy pay as you go", _CU, None, 1, "10,000 CU", None, 20, _ALCHEMY, dollars=0.45,
    price="$0.45 a million CU", page=_ALCHEMY_PAGE,
)  # fmt: skip
INFURA_PAID = Plan(
    "infura-paid", "Infura Developer", _CREDITS, 15_000_000, 1, "4,000 credits", None, 80, _INFURA, 1,
    price="$50 a month", page=_INFURA_PAGE,
)  # fmt: skip
QUICKNODE_PAID = Plan(
    "quicknode-paid", "QuickNode Build", _CREDITS, 80_000_000, 30, "50 requests", 10_000, 20, price="$49 a month",
    page=_QUICKNODE_PAGE,
)  # fmt: skip
PUBLIC = Plan("public", "public nodes", "requests", None, 1, "not published", None, 1, price="free")
HELIUS = Plan(
    "helius", "Helius Free", _CREDITS, 1_000_000, 30, "10 requests, 2 of DAS", None, 1, _HELIUS, page=_HELIUS_PAGE
)
HELIUS_PAID = Plan(
    "helius-paid", "Helius Developer", _CREDITS, 10_000_000, 30, "50 requests, 10 of DAS", None, 1, _HELIUS,
    price="$49 a month", page=_HELIUS_PAGE,
)  # fmt: skip
HELIUS_BUSINESS = Plan(
    "helius-business", "Helius Business", _CREDITS, 100_000_000, 30, "200 requests, 50 of DAS", None, 1, _HELIUS,
    price="$499 a month", page=_HELIUS_PAGE,
)  # fmt: skip

OPENSEA_READS_AN_HOUR = 600
"""Reads with a free key, which OpenSea gives out instantly (https://docs.opensea.io/reference/api-keys)."""
ALCHEMY_LIST = 480
"""CU for one page of 100 tokens from `getNFTsForOwner`."""

FREE = (ALCHEMY, INFURA, QUICKNODE)
FREE_BY_DOMAIN = {"alchemy.com": ALCHEMY, "infura.io": INFURA, "quiknode.pro": QUICKNODE, "helius-rpc.com": HELIUS}
"""The free plans by the domain of their nodes."""
PAID = (ALCHEMY_PAID, INFURA_PAID, QUICKNODE_PAID)
SOLANA = (HELIUS, HELIUS_PAID, HELIUS_BUSINESS)
