"""The screens' state: each handler checks its input, calls one service function and shows the result."""
