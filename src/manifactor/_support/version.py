"""The version, alone so that any module can name it."""

__version__ = "0.2.0"
