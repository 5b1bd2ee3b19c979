"""Parts that know nothing of manifolds, and the version, which any module can name."""

__version__ = "0.2.0"
