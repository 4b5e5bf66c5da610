"""First topics of the events that move tokens (docs/facts.md#token-standards).

`log_decoding.py` decodes these events for the followed blocks, `received_tokens.py` finds what came to one owner, and
`transfer_history.py` all transfers of one contract.
"""

TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""Of ERC-721 with four topics, and of ERC-20 with three."""
TRANSFER_SINGLE = "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62"
TRANSFER_BATCH = "0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb"
CONSECUTIVE = "0xdeaa91b6123d068f5821d0fb0678463d1a8a6079fe8af5de3ce5e896dcf9133d"
"""ERC-2309: many ERC-721 tokens of consecutive ids at once, from the first indexed id to the id in the data."""
