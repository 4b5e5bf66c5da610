"""Discord: the REST API with the bot's token, its limits, and OAuth2.

What a refusal of a role change means (50013, 60003 and others) is in `services/roles/write_results.py`.
"""
