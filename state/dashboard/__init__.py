"""The dashboard: a person's servers, inviting the bot, and charts."""
