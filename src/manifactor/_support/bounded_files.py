"""Files that make no room for bytes that they do not have."""

import io
import os
from pathlib import Path


class BoundedFile(io.BufferedReader):
    """A binary file, open for reading.

    Python makes room for as many bytes as it is asked to read, even if the file is shorter. Formats
    that store lengths could ask for any number.

    - size: bytes of the file when it was opened
    """

    def __init__(self, path: Path) -> None:
        """Open the file."""
        super().__init__(io.FileIO(path))
        self.size = os.fstat(self.fileno()).st_size

    def read(self, count: int | None = -1, /) -> bytes:
        """Return so many bytes, or those that are left."""
        left = max(0, self.size - self.tell())
        asked = left if count is None or count < 0 else count
        return super().read(min(asked, left))
