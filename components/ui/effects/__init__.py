"""What a screen does without user input: on a change, on a timer, and polling the health endpoint."""
