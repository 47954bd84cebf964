"""The folders of a workspace, and what may be touched in them."""
