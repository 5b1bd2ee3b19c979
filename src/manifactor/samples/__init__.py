"""What is given: samples, prepared, and what noise says of them."""
