"""``python -m ide_bridge``, for those who have no ``ide-bridge`` on their path."""

import os
import sys


def _forget_the_current_folder() -> None:
    """Take it off the path, where ``-m`` has put it: what lies there may be anyone's, and is not to be run."""
    try:
        if not sys.flags.safe_path and sys.path[0] == os.getcwd():
            del sys.path[0]
    except FileNotFoundError:  # a deleted folder is not on the path
        return


if __name__ == "__main__":
    _forget_the_current_folder()
    from ide_bridge.cli import main

    sys.exit(main())
