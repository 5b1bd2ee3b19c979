"""Groups of functions by the paper's algorithm: `method="triplets"`."""
