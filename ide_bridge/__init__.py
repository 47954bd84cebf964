"""Makes any editor a first-class IDE for Claude Code and other agent CLIs."""

__version__ = "0.1.0"
