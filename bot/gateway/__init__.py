"""The bot's connections to Discord's gateway."""
