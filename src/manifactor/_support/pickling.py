"""Records that travel to other processes."""

import dataclasses


class PickledFields:
    """A frozen dataclass that is pickled without its cached properties.

    They may be many times larger than the fields, and are computed again when needed.
    """

    def __getstate__(self) -> dict:
        """Return the fields."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name: getattr(self, field.name) for field in fields}
