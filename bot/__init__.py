"""Discord's front door: what happens in guilds reaches the product from here."""
