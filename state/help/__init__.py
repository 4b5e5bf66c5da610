"""What the help pages say about this installation."""
