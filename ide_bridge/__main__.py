"""``python -m ide_bridge``, for those who have no ``ide-bridge`` on their path."""

import sys

from ide_bridge.cli import main

if __name__ == "__main__":
    sys.exit(main())
