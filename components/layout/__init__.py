"""What surrounds a page: navigation, footer, banner, and who gets to see it."""
