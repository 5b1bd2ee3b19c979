"""Parts that know nothing of manifolds."""
