"""How each kind of client finds the bridge and reaches it."""
