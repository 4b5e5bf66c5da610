"""The bot's texts."""
