"""Answering an interaction: presses, forms, replies, and getting them through to Discord."""
