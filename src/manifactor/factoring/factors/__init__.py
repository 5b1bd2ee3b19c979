"""One factor: its functions, its shape, and where every sample lies on it."""
