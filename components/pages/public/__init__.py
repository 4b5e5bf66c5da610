"""Public pages: landing page, features, policies, contact, error pages."""
