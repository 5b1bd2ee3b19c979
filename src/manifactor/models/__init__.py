"""Functions to factors, one package for each way of reading them."""
