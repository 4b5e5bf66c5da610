"""The Discord bot, which passes guilds' events to the product and answers commands."""
