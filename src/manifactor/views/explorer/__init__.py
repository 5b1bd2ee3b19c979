"""The local web page on a run: what lies near a place on every factor, and which samples to take along."""
