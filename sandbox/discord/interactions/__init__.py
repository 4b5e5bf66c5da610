"""Interactions: from what a person did to the event that the bot receives."""
