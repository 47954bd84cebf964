"""What a client may ask for: one file per family of tools."""
