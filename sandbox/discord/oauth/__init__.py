"""OAuth2 and its pages."""
