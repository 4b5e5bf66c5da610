"""What a screen does without user input: on a change, and on a timer."""
