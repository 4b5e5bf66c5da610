"""The plans of the marketplaces and of Alchemy: how many requests each answers in how long."""

LIMITS = {"opensea": (600, 3600.0), "magiceden": (120, 60.0), "alchemy": (62_500, 30 * 86_400.0)}
"""Requests and seconds of each limit when the sandbox is strict.

OpenSea's is that of a free key (docs/facts.md#opensea-keys-and-limits), Magic Eden's that of one address without a key
(docs/facts.md#magic-eden-solana-api). Alchemy's is a free plan's compute units a month, at 480 a page
(docs/facts.md#alchemy-nft-api).
"""
