"""From measured numbers to the evidence on a factorization, and its verdict."""
