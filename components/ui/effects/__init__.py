"""What a screen does without a press: on a change, on a timer, and polling the health endpoint."""
