"""The roles that a move keeps, as SQL conditions; `MoveTerms` in `services/engine/decide.py` says it in Python."""

from services.wallets.ownership import has_counting_wallet

_NO_WALLET = "NOT " + has_counting_wallet('"grant".server_id', '"grant".discord_id')
_NOT_FORGOTTEN = 'NOT EXISTS (SELECT 1 FROM farewell f WHERE f.discord_id = "grant".discord_id)'

WITHOUT_WALLET = f"{_NO_WALLET} AND {_NOT_FORGOTTEN}"
"""The condition that the holder of a grant has no wallet that counts in its server, and did not ask to be forgotten."""

KEPT = f"""
    EXISTS (SELECT 1 FROM server_move v WHERE v.server_id = "grant".server_id AND v.state = 'open'
            AND "grant".role_id = ANY(v.roles))
    AND ("grant".had_before OR {_NO_WALLET}) AND {_NOT_FORGOTTEN}
"""
"""The condition that the server's open move keeps a grant's role, whatever the rules say."""
