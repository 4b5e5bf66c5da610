"""What pages of the console are made of: markup, forms, people's looks, and the place where somebody is."""
