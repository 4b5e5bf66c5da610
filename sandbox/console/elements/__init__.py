"""What pages of the console are made of: markup, forms, people's looks, and where somebody stands."""
