"""Numbers that speak for or against a product of the factors that were found."""
