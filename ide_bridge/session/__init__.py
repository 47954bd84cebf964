"""Sessions: the CLI under our control.

It knows nothing of editors, tools and the workspace; the two halves of the house meet in fronts and bridge.
"""
