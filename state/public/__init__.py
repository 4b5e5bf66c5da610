"""What public pages say about this installation."""
