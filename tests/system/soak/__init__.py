"""The soak: everything goes wrong for hours, and a verdict on each role that the product gave or took."""
