"""The request bodies that Discord accepts: one module for each kind of body, in the small language of `schema`."""
