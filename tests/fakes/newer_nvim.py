"""A person at the newer Neovim, the one that ``.ci/newer-nvim`` fetches.

It does not know what is different about it.
"""

from functools import partial

from tests.fakes.nvim import nvim

__all__ = ["newer_nvim"]

newer_nvim = partial(nvim, version="newer")
