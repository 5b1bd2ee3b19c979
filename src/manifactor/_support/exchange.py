"""Two files or folders exchanged in one step, where the system can."""

import ctypes
import os
import sys
from pathlib import Path

# <fcntl.h> and <linux/fs.h>, <sys/stdio.h>: relative to the current folder; exchange.
AT_FDCWD = -100
RENAME_EXCHANGE = RENAME_SWAP = 2


def exchange(one: Path, other: Path) -> bool:
    """Exchange two paths; return False, and change nothing, where that cannot be.

    Linux and macOS can, on most local file systems. Network file systems cannot.
    """
    names = os.fsencode(one), os.fsencode(other)
    try:
        system = ctypes.CDLL(None)
        if sys.platform == "darwin":
            return system.renamex_np(*names, RENAME_SWAP) == 0
        return system.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0
    # Another system, or a library without the function.
    except (OSError, TypeError, AttributeError):
        return False
