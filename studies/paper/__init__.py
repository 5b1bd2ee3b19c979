"""The figures and the table of the Product Manifold Learning paper, with numbers."""
