"""One contract or one role in another's place, in all rules of a server at once."""
