"""NFT collections: which one a reference means, its name, token standard and traits."""
