"""What a screen does by itself: at a change, every few seconds, and asking for health."""
