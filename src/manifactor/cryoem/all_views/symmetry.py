"""Point groups: the rotations after which a symmetric molecule looks the same."""

import re
from collections.abc import Sequence

import numpy as np
from scipy.constants import golden
from scipy.spatial.transform import Rotation

# An axis of rotation: in how many turns the circle is divided, and its direction.
Axis = tuple[int, tuple[float, float, float]]
X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
# Two axes that all others follow from, in RELION's orientations; other programs orient T and I in
# other ways. I1 and I2 have two-fold axes along x, y and z, and I3 and I4 a five-fold axis along z.
GENERATORS: dict[str, tuple[Axis, Axis]] = {
    "T": ((3, Z), (2, (0.0, np.sqrt(2), 1.0))),
    "O": ((4, Z), (3, (1.0, 1.0, 1.0))),
    "I1": ((2, X), (5, (golden, 0.0, -1.0))),
    "I2": ((2, Z), (5, (1.0, 0.0, golden))),
    "I3": ((5, Z), (2, (-1.0, 0.0, golden))),
    "I4": ((5, Z), (2, (1.0, 0.0, golden))),
}


def point_group(name: str) -> np.ndarray:
    """Return the rotations of a point group, (order, 3, 3), the identity first.

    >>> [len(point_group(name)) for name in ("C4", "D2", "T", "O", "I1")]
    [4, 4, 12, 24, 60]
    """
    symbol = name.upper()
    if symbol in GENERATORS:
        return _generated(GENERATORS[symbol])
    turns = re.fullmatch(r"([CD])([1-9]\d{0,2})", symbol)
    if turns is None:
        raise ValueError(
            "`symmetry` must be a point group Cn, Dn, T, O, or I1 to I4 as RELION "
            f"orients them, such as C4; got {name!r}."
        )
    main = (int(turns[2]), Z)
    return _generated((main,) if turns[1] == "C" else (main, (2, X)))


def _generated(axes: Sequence[Axis]) -> np.ndarray:
    """Return all products of rotations about some axes."""
    steps = [_rotation(*axis) for axis in axes]
    found = [np.eye(3)]
    # The list grows while it is gone through, until every product is in it.
    for rotation in found:
        for step in steps:
            product = step @ rotation
            if np.abs(np.stack(found) - product).max(axis=(1, 2)).min() > 1e-6:
                found.append(product)
    return np.stack(found)


def _rotation(turns: int, direction: tuple[float, float, float]) -> np.ndarray:
    unit = np.array(direction) / np.linalg.norm(direction)
    return Rotation.from_rotvec(2 * np.pi / turns * unit).as_matrix()
