"""The cases of `behaviour.py`: fits, commands, and the digests of their results."""
