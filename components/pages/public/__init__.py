"""What anybody may read: landing page, features, policies, contact, error pages."""
