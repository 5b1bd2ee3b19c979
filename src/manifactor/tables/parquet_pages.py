"""Sizes of the pages of a Parquet file, read from their headers before the pages.

A page says how large it is when it is unpacked, and pyarrow takes that much memory, whatever number
of rows the file claims. Headers are records in Thrift's compact protocol; of interest are their two
sizes and the number of values.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from manifactor._support.array_files import ArrayFileSettings

# Numbers of Thrift's types.
TRUE, FALSE, BYTE, SHORT, INT, LONG, DOUBLE, TEXT, LIST, SET, MAP, RECORD = range(1, 13)
# Fields of a header: the type of its page and both sizes.
TYPE, UNPACKED, PACKED = 1, 2, 3
# Types of pages of values, and the field of the header that is about these. Its first field is
# their number.
OF_VALUES = {0: 5, 3: 8}
N_VALUES = 1
# Bytes that a header of a page of numbers may have; usual ones have less than 100.
LONGEST = 4096
# Records in records, beyond what headers have.
DEEPEST = 8


class _Damaged(ValueError):
    """A header that cannot be followed."""


def require_separate(path: Path, metadata: Any, stored: int) -> None:
    """Refuse columns that together claim more bytes than are stored.

    They would lie in each other, and the same pages be read again and again.
    """
    packed = sum(
        max(0, column.total_compressed_size)
        for number in range(metadata.num_row_groups)
        for column in _columns(metadata.row_group(number))
    )
    if packed > stored:
        raise ValueError(
            f"{path} is damaged: it holds {stored:,} bytes, and its columns claim "
            f"{packed:,}. Write it again."
        )


def require_plausible_group(
    path: Path,
    group: Any,
    names: Collection[str],
    *,
    settings: ArrayFileSettings = ArrayFileSettings(),
) -> None:
    """Refuse columns that claim other rows than their group, or unpack to far more."""
    wanted = set(names)
    used = [column for column in _columns(group) if column.path_in_schema in wanted]
    for column in used:
        if column.num_values != group.num_rows:
            raise ValueError(
                f"column {column.path_in_schema!r} claims {column.num_values} cells "
                f"in {group.num_rows} rows"
            )
    with path.open("rb") as file:
        size = sum(_unpacked_size(file, column) for column in used)
    stored = path.stat().st_size
    if size > settings.free + settings.most_expansion * stored:
        raise ValueError(f"it holds {stored:,} bytes, and its pages unpack to {size:,}")


def _columns(group: Any) -> list[Any]:
    return [group.column(number) for number in range(group.num_columns)]


def _unpacked_size(file: BinaryIO, column: Any) -> int:
    """Return the bytes to which all pages of a column claim to unpack."""
    try:
        return sum(_unpacked_sizes(file, column))
    except (_Damaged, IndexError) as error:
        raise ValueError(
            f"the pages of column {column.path_in_schema!r} do not follow each other"
        ) from error


def _extent(column: Any) -> tuple[int, int]:
    """Return where the pages of a column start and end, as pyarrow finds them."""
    start = column.data_page_offset
    if column.has_dictionary_page and 0 < column.dictionary_page_offset < start:
        start = column.dictionary_page_offset
    return start, start + column.total_compressed_size


def _unpacked_sizes(file: BinaryIO, column: Any) -> Iterator[int]:
    """Yield the size of each page, up to the last one that pyarrow reads."""
    start, end = _extent(column)
    n_values = 0
    # Some writers count bytes behind the last page to the column.
    while start < end and n_values < column.num_values:
        file.seek(start)
        header = _Header(file.read(LONGEST))
        fields = header.numbers()
        yield fields[UNPACKED]
        start += header.position + fields[PACKED]
        n_values += fields.get(OF_VALUES.get(fields[TYPE], 0), 0)


class _Header:
    """The bytes of a header, and how many of them were read."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.position = 0

    def numbers(self) -> dict[int, int]:
        """Return type, sizes and numbers of values, each by its field."""
        found: dict[int, int] = {}
        for number, kind in self._fields():
            if number in found:
                raise _Damaged
            if number in (TYPE, UNPACKED, PACKED):
                found[number] = self._count(kind)
            elif number in OF_VALUES.values() and kind == RECORD:
                found[number] = self._n_values()
            else:
                self._skip(kind, 0)
        if not {TYPE, UNPACKED, PACKED} <= found.keys():
            raise _Damaged
        return found

    def _n_values(self) -> int:
        """Return the number of values that a record inside the header states."""
        stated = 0
        for number, kind in self._fields():
            if number == N_VALUES:
                stated = self._count(kind)
            else:
                self._skip(kind, 1)
        return stated

    def _count(self, kind: int) -> int:
        """Return a whole number from 0 to that of 31 bits."""
        value = self._number()
        # Signs alternate: 0, -1, 1, -2, ...
        if kind != INT or value % 2 or value >= 2**32:
            raise _Damaged
        return value // 2

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of each field; the caller reads or skips its value."""
        number = 0
        while start := self._byte():
            step, kind = divmod(start, 16)
            # A step of 0 is followed by the number itself, with its sign.
            number = number + step if step else self._number() // 2
            yield number, kind

    def _skip(self, kind: int, depth: int) -> None:
        if depth > DEEPEST:
            raise _Damaged
        if kind in (TRUE, FALSE):  # the type is the value
            return
        if kind in (SHORT, INT, LONG):
            self._number()
        elif kind in (BYTE, DOUBLE):
            self.position += 1 if kind == BYTE else 8
        elif kind == TEXT:
            length = self._number()
            self.position += length
        elif kind == RECORD:
            for _, inner in self._fields():
                self._skip(inner, depth + 1)
        else:  # lists, sets and maps, which headers of pages do not have
            raise _Damaged

    def _byte(self) -> int:
        self.position += 1
        return self.content[self.position - 1]

    def _number(self) -> int:
        """Return a number of seven bits a byte, the lowest first."""
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise _Damaged
