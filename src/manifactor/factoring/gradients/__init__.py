"""Blocks of functions whose gradients are orthogonal: `method="gradients"`."""
