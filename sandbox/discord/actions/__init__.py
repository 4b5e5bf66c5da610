"""What can happen in Discord: to members, roles, channels, messages and the bot."""
