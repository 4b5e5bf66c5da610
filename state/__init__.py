"""What a screen does: each handler checks, calls one service verb and shows the outcome."""
