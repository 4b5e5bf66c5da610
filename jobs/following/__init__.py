"""Follow chains: poll them for transfers of what rules name, and listen for new blocks."""
