"""What the product does: one module of verbs a noun, called by every front door with the actor whose rights decide."""
