"""What replaces something that rules name: another contract, another role."""
