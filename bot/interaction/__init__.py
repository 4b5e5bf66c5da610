"""Interactions: presses, forms, replies, and their delivery to Discord."""
