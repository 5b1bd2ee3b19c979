"""Distances of samples to their neighbours as a symmetric graph."""

import numpy as np
import scipy.sparse as sp

from manifactor.spectral.resident import ResidentMatrix
from manifactor.spectral.search.device import NeighborTable


def symmetric(distances: sp.csr_array | NeighborTable) -> sp.csr_array | ResidentMatrix:
    """Return an entry wherever either sample is a neighbour, none on the diagonal."""
    if isinstance(distances, NeighborTable):
        return distances.symmetric()
    distances = _with_short_indices(distances)
    # Both directions of an edge have the same distance, or one of them none.
    distances = distances.maximum(distances.T)
    diagonal = distances.diagonal()
    if diagonal.any():  # only a matrix of the caller's has one
        distances = sp.csr_array(distances - sp.diags_array(diagonal))
    distances.eliminate_zeros()
    distances.sort_indices()
    return distances


def _with_short_indices(matrix: sp.csr_array) -> sp.csr_array:
    """Return a matrix with indices of 4 bytes, where its symmetric form allows it."""
    most = np.iinfo(np.int32).max
    if max(2 * matrix.nnz, *matrix.shape) > most:
        return matrix
    indices = matrix.indices.astype(np.int32, copy=False)
    indptr = matrix.indptr.astype(np.int32, copy=False)
    return sp.csr_array((matrix.data, indices, indptr), shape=matrix.shape)
