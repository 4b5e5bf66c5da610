"""Discord: the REST API with the bot's token, its limits, and OAuth2.

`services/roles/write_results.py` interprets refusals of role changes (50013, 60003 and others).
"""
