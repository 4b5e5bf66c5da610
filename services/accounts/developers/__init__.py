"""Programs of a server's admins: the API tokens with which they call, and the webhook that calls them."""
