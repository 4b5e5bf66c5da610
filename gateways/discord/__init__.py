"""Discord: the REST API with the bot's token, its limits, and OAuth2."""
