"""The seam to torch: matrices, functions and blocks of vectors that stay on a device."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from manifactor._support.errors import extra, first_sentence
from manifactor._support.threads import map_panels

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")

# Rows of a block that are worked on at a time: none is converted to double precision as a whole.
PANEL_ROWS = 2**20


@dataclass(frozen=True)
class ResidentMatrix:
    """A symmetric sparse matrix of tensors, compressed by rows."""

    indptr: "Tensor"  # (n + 1,): where the entries of each row begin
    indices: "Tensor"  # (n_entries,)
    data: "Tensor"  # (n_entries,): in single precision
    diagonal: "Tensor | None" = None  # (n,): added to the diagonal, in double precision

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.indptr) - 1, len(self.indptr) - 1

    def rows(self) -> "Tensor":
        """Return the row of every entry, (n_entries,)."""
        return extra("torch").repeat_interleave(self.indptr.diff())

    def compressed(self, *, double: bool) -> "Tensor":
        """Return the entries without `diagonal` as a sparse tensor of torch."""
        entries = self.data.double() if double else self.data
        return _compressed(self.indptr, self.indices, entries, self.shape)

    def __matmul__(self, vector: np.ndarray) -> np.ndarray:
        lifted = self.lift(vector)
        product = self.compressed(double=True) @ lifted
        if self.diagonal is not None:
            product = product + self.diagonal * lifted
        return product.cpu().numpy()

    def lift(self, vector: np.ndarray) -> "Tensor":
        """Return a vector in double precision on the device of the matrix."""
        return on_device(self.data.device, vector, np.float64)

    def scaled(self, scale: np.ndarray) -> "ResidentMatrix":
        """Return the matrix with rows and columns multiplied by a scale, (n,)."""
        lifted = self.lift(scale)
        single = lifted.float()
        entries = self.data * single.repeat_interleave(self.indptr.diff())
        entries *= single[self.indices]
        diagonal = None if self.diagonal is None else self.diagonal * lifted**2
        return replace(self, data=entries, diagonal=diagonal)

    def __getitem__(self, rows: np.ndarray) -> sp.csr_array:
        """Return some rows on the host, (n_rows, n)."""
        device = self.indptr.device
        which = on_device(device, rows)
        count = self.indptr.diff()[which]
        ends = count.cumsum(0)
        shift = self.indptr[which] - ends + count
        place = extra("torch").arange(int(ends[-1]), device=device)
        place = place + shift.repeat_interleave(count)
        data = self.data[place].double().cpu().numpy()
        columns = self.indices[place].cpu().numpy()
        starts = np.r_[0, ends.cpu().numpy()]
        shape = len(rows), self.shape[1]
        taken = sp.csr_array((data, columns, starts), shape=shape)
        if self.diagonal is None:
            return taken
        diagonal = self.diagonal[which].cpu().numpy()
        return taken + sp.csr_array((diagonal, rows, np.arange(len(rows) + 1)), shape=shape)

    def tocsr(self) -> sp.csr_array:
        """Return the whole matrix on the host, in double precision."""
        if self.diagonal is not None:
            return self._with_diagonal_inside().tocsr()
        data = from_tensor(self.data.double())
        indices = from_tensor(self.indices)
        return sp.csr_array((data, indices, self.indptr.cpu().numpy()), shape=self.shape)

    def _with_diagonal_inside(self) -> "ResidentMatrix":
        """Return the matrix with the diagonal as the last entry of each row."""
        torch = extra("torch")
        device = self.indptr.device
        steps = torch.arange(len(self.indptr), dtype=torch.int32, device=device)
        starts = self.indptr + steps
        place = torch.arange(len(self.data), device=device) + self.rows()
        last = starts[1:] - 1
        columns = self.indices.new_empty(len(self.indices) + self.shape[0])
        entries = self.data.new_empty(len(columns), dtype=torch.float64)
        columns[place] = self.indices
        entries[place] = self.data.double()
        columns[last] = steps[:-1]
        entries[last] = self.diagonal  # type: ignore[assignment]
        return ResidentMatrix(starts, columns, entries)

    def components(self) -> int:
        """Return the number of connected components of the graph of the entries."""
        torch = extra("torch")
        label = torch.arange(self.shape[0], device=self.indptr.device)
        rows, columns = self.rows(), self.indices.long()
        # Hooking and pointer jumping: the roots of two components that touch are hooked together,
        # then every sample looks up its root.
        while True:
            joined = label.scatter_reduce(0, label[rows], label[columns], "amin")
            while not torch.equal(root := joined[joined], joined):
                joined = root
            if torch.equal(joined, label):
                return int(label.unique().numel())
            label = joined


def with_data(matrix: Any, data: Any) -> Any:
    """Return a matrix with other entries and the same pattern, which is large and shared."""
    if isinstance(matrix, ResidentMatrix):
        return replace(matrix, data=data)
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def resident(matrix: sp.csr_array, device) -> ResidentMatrix:
    """Return a symmetric sparse matrix of the host on a device."""
    return ResidentMatrix(
        on_device(device, matrix.indptr, np.int32),
        on_device(device, matrix.indices, np.int32),
        on_device(device, matrix.data, np.float32),
    )


def settled(record: Any) -> Any:
    """Return a matrix, or a record of records, with everything in the host's memory."""
    if isinstance(record, ResidentMatrix):
        return record.tocsr()
    if isinstance(record, tuple):
        return tuple(map(settled, record))
    if is_dataclass(record) and not isinstance(record, type):
        inside = {field.name: getattr(record, field.name) for field in fields(record)}
        return replace(record, **{name: settled(value) for name, value in inside.items()})
    # The only tensors of a record are functions that it has on the host as well.
    return None if is_tensor(record) else record


def require_device(device: str) -> str:
    """Return torch's own name of a device; raise ValueError if it cannot be used."""
    torch = extra("torch")
    name = str(device).removeprefix("torch:")
    # Only an allocation shows whether a device works, and each kind of failure has an exception of
    # its own. Nothing but torch is inside.
    try:
        torch.empty(1, device=name).item()
    except Exception as error:
        # A device that torch finds may still fail, as one without free memory does.
        works = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        found = ", ".join(repr(each) for each in ["cpu", *filter(works.get, works)])
        raise ValueError(
            f"`device` must be 'cpu' or a device that torch can use; got {device!r}: "
            f"{first_sentence(error)}. On this machine torch finds {found}."
        ) from error
    return name


def is_tensor(X) -> bool:
    """Return whether X is a tensor of torch, without importing torch."""
    return type(X).__module__.partition(".")[0] == "torch"


def from_tensor(X):
    """Return a tensor as an array on the host, anything else as it is."""
    if not is_tensor(X):
        return X
    if X.device.type == "cpu":
        return X.detach().numpy()
    # Pages are touched first: the driver takes 8 times as long to copy into new ones.
    touched = extra("torch").empty_like(X, device="cpu").fill_(0)
    return touched.copy_(X.detach()).numpy()


def like(X, array: np.ndarray):
    """Return an array as a tensor on the device of X if X is a tensor."""
    return on_device(X.device, array) if is_tensor(X) else array


def namespace(X) -> Any:
    """Return torch if X is a tensor, else numpy: many functions of both have the same names."""
    return extra("torch") if is_tensor(X) else np


def cast(X, dtype: Any):
    """Return an array or a tensor in a precision of numpy's or torch's; itself if it is in it."""
    return X.to(dtype) if is_tensor(X) else X.astype(dtype, copy=False)


def columns_of(block, which: np.ndarray):
    """Return some columns of an array or a tensor."""
    # Rows of an array stay contiguous, as they would not with an index.
    return block[:, which] if is_tensor(block) else np.take(block, which, axis=1)


def sparse_rows(entries, columns, width: int):
    """Return a matrix of entries in columns, (n, k), as (n, width), of scipy or of torch."""
    n, k = entries.shape
    # Starts of the same type as the columns, or SciPy would copy these to the wider one.
    kind = np.int32 if is_tensor(columns) else columns.dtype
    starts = like(entries, np.arange(0, n * k + 1, k, dtype=kind))
    parts = starts, columns.ravel(), entries.ravel()
    if is_tensor(entries):
        return _compressed(*parts, (n, width))
    return sp.csr_array(parts[::-1], shape=(n, width))


def transposed(matrix):
    """Return the transpose of a sparse matrix of scipy or of torch."""
    if not is_tensor(matrix):
        return matrix.T.tocsr()
    parts = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    shape = matrix.shape[::-1]
    turned = extra("torch").sparse_csc_tensor(*parts, shape, check_invariants=False)
    return turned.to_sparse_csr()


def _compressed(
    starts: "Tensor", columns: "Tensor", entries: "Tensor", shape: tuple[int, int]
) -> "Tensor":
    # Torch warns once in a process, each time of a tensor of its own: that such tensors are a
    # beta feature, and that their invariants are not checked.
    for start in ("Sparse CSR tensor support is in beta", "Sparse invariant checks are"):
        warnings.filterwarnings("ignore", start, UserWarning)
    torch = extra("torch")
    return torch.sparse_csr_tensor(starts, columns, entries, shape, check_invariants=False)


def on_device(device: Any, array: np.ndarray, dtype: Any = None) -> "Tensor":
    """Return an array as a tensor on a device."""
    return extra("torch").as_tensor(np.ascontiguousarray(array, dtype)).to(device)


def map_rows(work: Callable[[slice], T], X) -> list[T]:
    """Return `work` of panels of rows of X: on all cores, or one by one for a tensor."""
    if is_tensor(X):
        return [work(rows) for rows in gen_batches(len(X), PANEL_ROWS)]
    return map_panels(work, len(X))


@contextmanager
def device_memory(
    what: str = "the graph and its functions",
    advice: str = "lower `n_functions` or `n_neighbors`, fit fewer samples, or use `device='cpu'`",
) -> Iterator[None]:
    """Raise MemoryError with advice if the device runs out of memory inside."""
    try:
        yield
    except RuntimeError as error:
        # By name, since torch is not imported for this.
        if type(error).__name__ != "OutOfMemoryError":
            raise
        reason = str(error).splitlines()[0]
    else:
        return
    # Raised outside of the handler: the traceback of torch's error would hold on to the memory of
    # the device.
    raise MemoryError(
        f"{what} must fit into the device's memory; it is full ({reason}) Free some, {advice}."
    )
