"""What Discord takes in request bodies: one module for each kind of body, in the small language of `schema`."""
