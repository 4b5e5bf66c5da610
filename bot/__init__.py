"""The Discord bot: passes events of guilds to the product, and answers commands."""
