"""The frame of a page: navigation, footer, banner, and the choice of audience."""
