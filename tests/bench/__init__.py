"""How fast the bridge is, as ratios to what nobody could do without; run it with ``python -m tests.bench``."""
