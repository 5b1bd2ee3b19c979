"""The paper's figures and table, made by this package, each with numbers beside the picture."""
