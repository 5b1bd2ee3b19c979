"""Stages of a fit that need not be gone through again while what they depend on stays the same."""

import hashlib
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

ROWS = 2**16
log = logging.getLogger("manifactor")


class Stages:
    """What stages have led to, each with a key of all that it depends on."""

    def __init__(self, kept: dict[str, tuple[str, Any]] | None = None) -> None:
        """Remember what was kept."""
        self.kept = kept or {}

    def __call__(self, name: str, key: str, make: Callable[[], Any]) -> Any:
        """What was kept under the name if the key is the same, else what is made now."""
        known, value = self.kept.get(name, ("", None))
        if known == key:
            log.info("%s: kept, nothing that they depend on has changed", name)
        else:
            value = make()
            self.kept[name] = (key, value)
        return value


def fingerprint(*parts: Any) -> str:
    """A short text that differs where arrays, sparse matrices or settings do.

    Examples
    --------
    >>> fingerprint(np.arange(3.0), 64) == fingerprint(np.arange(3.0), 64)
    True
    >>> fingerprint(np.arange(3.0), 64) == fingerprint(np.arange(3.0), 32)
    False
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        arrays = [part.data, part.indices, part.indptr] if sp.issparse(part) else [part]
        for array in arrays:
            if isinstance(array, np.ndarray):
                digest.update(f"{array.dtype} {array.shape} ".encode())
                for rows in gen_batches(len(array), ROWS):  # never copied whole
                    digest.update(np.ascontiguousarray(array[rows]).data)
            else:
                digest.update(f"{array!r}; ".encode())
    return digest.hexdigest()
