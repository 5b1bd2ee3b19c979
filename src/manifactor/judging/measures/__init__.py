"""Numbers that speak for or against a product of the factors; `table` has their limits."""
