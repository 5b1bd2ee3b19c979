"""Symmetric sparse matrices that stay where torch has put them, on a GPU or not: the neighbour graph and its kernel."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from manifactor._support.extras import extra
from manifactor.spectral.search.cells import cell_order, nearest

if TYPE_CHECKING:
    from torch import Tensor

NEIGHBORHOODS = 256  # that are gathered at a time
ROWS = 2**20  # samples whose products are formed at a time
ACROSS = 2**28  # distances between new and known samples at a time


@dataclass(frozen=True)
class ResidentMatrix:
    """A symmetric sparse matrix of tensors.

    Attributes
    ----------
    starts : Tensor of shape (n + 1,)
        Where the entries of each row begin.
    columns : Tensor of shape (n_entries,)
    entries : Tensor of shape (n_entries,)
        In single precision.
    diagonal : Tensor of shape (n,) or None
        What is added to the diagonal, in double precision.
    """

    starts: "Tensor"
    columns: "Tensor"
    entries: "Tensor"
    diagonal: "Tensor | None" = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.starts) - 1, len(self.starts) - 1

    def rows(self) -> "Tensor":
        """The row of every entry."""
        return extra("torch").repeat_interleave(self.starts.diff())

    def compressed(self, *, double: bool) -> "Tensor":
        """The entries beside the diagonal as a tensor that multiplies."""
        entries = self.entries.double() if double else self.entries
        with warnings.catch_warnings(
            action="ignore", category=UserWarning
        ):  # torch calls this a beta, every time
            return extra("torch").sparse_csr_tensor(
                self.starts, self.columns, entries, self.shape, check_invariants=False
            )

    def __matmul__(self, vector: np.ndarray) -> np.ndarray:
        there = self.lift(vector)
        out = self.compressed(double=True) @ there
        return (
            (out if self.diagonal is None else out + self.diagonal * there)
            .cpu()
            .numpy()
        )

    def lift(self, vector: np.ndarray) -> "Tensor":
        """A vector, in double precision, where the matrix is."""
        return (
            extra("torch")
            .as_tensor(np.asarray(vector, dtype=np.float64))
            .to(self.entries.device)
        )

    def gaussian(self, eps: float, least: float) -> "ResidentMatrix":
        """exp(-entry^2/eps), at least so much."""
        return replace(self, entries=(self.entries**2 / -eps).exp_().clamp_(min=least))

    def times_squares(self, other: "ResidentMatrix") -> "ResidentMatrix":
        """Entries times the squares of another matrix's of the same pattern."""
        return replace(self, entries=self.entries * other.entries**2)

    def with_unit_diagonal(self) -> "ResidentMatrix":
        """The matrix with ones on its diagonal."""
        return replace(self, diagonal=self.lift(np.ones(self.shape[0])))

    def scaled(self, scale: np.ndarray) -> "ResidentMatrix":
        """Rows and columns times a scale."""
        there = self.lift(scale)
        short = there.float()
        entries = self.entries * short.repeat_interleave(self.starts.diff())
        entries *= short[self.columns]
        return replace(
            self,
            entries=entries,
            diagonal=None if self.diagonal is None else self.diagonal * there**2,
        )

    def take(self, rows: np.ndarray) -> sp.csr_array:
        """Some rows on this machine's side, (n_rows, n)."""
        torch = extra("torch")
        which = torch.as_tensor(rows, device=self.starts.device)
        count = self.starts.diff()[which]
        ends = count.cumsum(0)
        shift = self.starts[which] - ends + count
        place = torch.arange(
            int(ends[-1]), device=ends.device
        ) + shift.repeat_interleave(count)
        data, columns = (
            self.entries[place].double().cpu().numpy(),
            self.columns[place].cpu().numpy(),
        )
        out = sp.csr_array(
            (data, columns, np.r_[0, ends.cpu().numpy()]),
            shape=(len(rows), self.shape[1]),
        )
        if self.diagonal is None:
            return out
        diagonal = self.diagonal[which].cpu().numpy()
        return out + sp.csr_array(
            (diagonal, rows, np.arange(len(rows) + 1)), shape=out.shape
        )

    def tocsr(self) -> sp.csr_array:
        """The whole matrix on this machine's side, in double precision."""
        if self.diagonal is not None:
            return self._with_diagonal_inside().tocsr()
        data, indices = from_tensor(self.entries.double()), from_tensor(self.columns)
        return sp.csr_array(
            (data, indices, self.starts.cpu().numpy()), shape=self.shape
        )

    def _with_diagonal_inside(self) -> "ResidentMatrix":
        """The diagonal as the last entry of each row."""
        torch = extra("torch")
        steps = torch.arange(
            len(self.starts), dtype=torch.int32, device=self.starts.device
        )
        place, last = (
            torch.arange(len(self.entries), device=steps.device) + self.rows(),
            (self.starts + steps)[1:] - 1,
        )
        columns = self.columns.new_empty(len(self.columns) + self.shape[0])
        entries = self.entries.new_empty(len(columns), dtype=torch.float64)
        columns[place], entries[place] = self.columns, self.entries.double()
        columns[last], entries[last] = steps[:-1], self.diagonal  # type: ignore[assignment]
        return ResidentMatrix(self.starts + steps, columns, entries)

    def components(self) -> int:
        """Into how many pieces the graph of the entries falls."""
        torch = extra("torch")
        label = torch.arange(self.shape[0], device=self.starts.device)
        rows, columns = self.rows(), self.columns.long()
        while True:  # the roots of two pieces that touch are hooked together, then everyone looks up the root
            joined = label.scatter_reduce(0, label[rows], label[columns], "amin")
            while not torch.equal(root := joined[joined], joined):
                joined = root
            if torch.equal(joined, label):
                return int(label.unique().numel())
            label = joined


def require_device(device: str) -> str:
    """The device by torch's own name; an error where there is none of that name."""
    torch = extra("torch")
    name = str(device).removeprefix("torch:")
    try:
        torch.empty(1, device=name).item()
    except Exception as error:  # torch has many ways to say so
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(
            f"`device` must be 'cpu' or a device that torch can use; got {device!r}: {reason}"
        ) from error
    return name


def is_tensor(X) -> bool:
    """Whether this is one of torch's tensors; torch is not imported to find out."""
    return type(X).__module__.partition(".")[0] == "torch"


def from_tensor(X):
    """A tensor as an array; anything else as it is."""
    if not is_tensor(X):
        return X
    if X.device.type == "cpu":
        return X.detach().numpy()
    touched = (
        extra("torch").empty_like(X, device="cpu").fill_(0)
    )  # a driver takes 8 times as long for new pages
    return touched.copy_(X.detach()).numpy()


def like(X, array: np.ndarray):
    """An array as a tensor where X is one, on the same device."""
    return extra("torch").as_tensor(array).to(X.device) if is_tensor(X) else array


def functions_there(
    vectors: "Tensor", weights: np.ndarray, nearly: float
) -> "Tensor | None":
    """Vectors of a walk as functions, the constant taken out of all others; None where they hold too much of it."""
    torch = extra("torch")
    root = torch.as_tensor(np.sqrt(weights)).to(vectors.device)
    mixed = root @ vectors
    if mixed[1:].abs().gt(nearly).any():
        return None
    functions = vectors / root[:, None] - mixed
    functions *= torch.where(functions.amax(0) < -functions.amin(0), -1.0, 1.0)
    functions[:, 0] = 1.0
    return functions


def triple_products(
    functions: "Tensor", weights: np.ndarray, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """As `Spectrum.triple_products`, where the functions are."""
    torch = extra("torch")
    one, other, weight = (
        torch.as_tensor(np.ascontiguousarray(a)).to(functions.device)
        for a in (left, right, weights)
    )
    found, squares = 0.0, 0.0
    for some, w in zip(functions.split(ROWS), weight.split(ROWS), strict=True):
        product = (some @ one) * (some @ other)
        weighted = w[:, None] * product
        found, squares = (
            found + some.T @ weighted,
            squares + (weighted * product).sum(0),
        )
    return found.cpu().numpy(), squares.cpu().numpy()  # type: ignore[attr-defined]


def local_products(
    functions: "Tensor", near: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """As `Spectrum.local_products`, where the functions are."""
    torch = extra("torch")
    rows, there = (
        torch.as_tensor(np.ascontiguousarray(a)).to(functions.device)
        for a in (near, weights)
    )
    some = zip(there.split(NEIGHBORHOODS), rows.split(NEIGHBORHOODS), strict=True)
    return from_tensor(torch.cat([weight @ functions[these] for weight, these in some]))


def combined(functions: "Tensor", coefficients: np.ndarray) -> np.ndarray:
    """Combinations of functions, (n, p)."""
    there = (
        extra("torch")
        .as_tensor(np.ascontiguousarray(coefficients))
        .to(functions.device)
    )
    return from_tensor(functions @ there)


def resident(matrix: sp.csr_array, device) -> ResidentMatrix:
    """A symmetric sparse matrix of this machine's side on a device."""
    torch = extra("torch")
    parts = (
        matrix.indptr.astype(np.int32),
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float32),
    )
    return ResidentMatrix(*(torch.as_tensor(part).to(device) for part in parts))


@dataclass(frozen=True)
class NeighborTable:
    """Neighbours of every sample: their distances and their indices, both of shape (n, n_neighbors)."""

    distances: "Tensor"
    indices: "Tensor"

    def copies(self) -> sp.csr_array:
        """The neighbours at distance 0, on this machine's side: ones."""
        row, column = (self.distances == 0).nonzero(as_tuple=True)
        entries = (
            np.ones(len(row)),
            (row.cpu().numpy(), self.indices[row, column].cpu().numpy()),
        )
        return sp.csr_array(entries, shape=(len(self.indices), len(self.indices)))

    def symmetric(self) -> ResidentMatrix:
        """An entry wherever either sample is a neighbour of the other."""
        torch = extra("torch")
        n, k = self.indices.shape
        row = (
            torch.arange(n, device=self.indices.device)[:, None]
            .expand(n, k)
            .reshape(-1)
        )
        column = self.indices.reshape(-1)
        key, order = torch.cat([row * n + column, column * n + row]).sort()
        kept = torch.ones_like(key, dtype=torch.bool)
        kept[1:] = key[1:] != key[:-1]
        key, order = key[kept], order[kept]
        count = torch.bincount(key // n, minlength=n)
        starts = torch.cat([count.new_zeros(1), count.cumsum(0)])
        return ResidentMatrix(
            starts.int(), (key % n).int(), self.distances.reshape(-1)[order % (n * k)]
        )


@contextmanager
def device_memory() -> Iterator[None]:
    """What is said when a device runs out of memory in spite of small steps."""
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        reason = str(error).splitlines()[0]
    else:
        return
    raise MemoryError(
        f"the graph and its functions must fit into the device's memory; it is full ({reason}) Free some, lower "
        "`n_functions` or `n_neighbors`, fit fewer samples, or use `device='cpu'`."
    )


class DeviceSearch(BaseEstimator):
    """Exact search on a device, like KNeighborsTransformer; a fit's own samples are sought in cells."""

    def __init__(self, n_neighbors: int = 64, *, device: str = "cuda") -> None:
        self.n_neighbors = n_neighbors
        self.device = device

    def fit(self, X, y=None) -> "DeviceSearch":
        """Put samples on the device."""
        self.samples_ = self._there(X)
        self.mean_ = self.samples_.double().mean(dim=0)
        return self

    def table(self) -> NeighborTable:
        """Neighbours of the samples themselves."""
        return NeighborTable(*nearest(self.samples_, self.n_neighbors))

    def local_order(self, X) -> np.ndarray:
        """Samples in an order in which neighbours lie close together."""
        return cell_order(self._there(X)).cpu().numpy()

    def transform(self, X) -> sp.csr_array:
        """Distances of new samples to one more than `n_neighbors` samples, (n_new, n)."""
        torch = extra("torch")
        count = min(self.n_neighbors + 1, len(self.samples_))
        step = max(1, ACROSS // len(self.samples_))
        new, known = (
            self._there(X).double() - self.mean_,
            self.samples_.double() - self.mean_,
        )
        exact = "donot_use_mm_for_euclid_dist"  # products would round, and a sample would miss itself
        found = [
            torch.cdist(block, known, compute_mode=exact).topk(count, largest=False)
            for block in new.split(step)
        ]
        data, indices = (
            torch.cat(parts).cpu().numpy().ravel() for parts in zip(*found, strict=True)
        )
        indptr = np.arange(0, len(data) + 1, count)
        return sp.csr_array(
            (data.astype(float), indices, indptr), shape=(len(X), len(self.samples_))
        )

    def _there(self, X) -> "Tensor":
        return extra("torch").as_tensor(np.array(X)).to(self.device)
