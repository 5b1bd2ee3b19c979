"""From measured numbers to the evidence on a factorization, and its verdict.

criterion
    `Criterion` judges a measured value and returns a `Test`.
limits
    The limits of all tests, with the measurements behind them.
criteria, criteria_of_places, criteria_of_one_factor
    All criteria: their meaning, their limit, and what to say if they fail.
evidence, advice
    `Evidence`: the tests of a fit, the verdict that follows, and both in words.
terms
    The evidence on a sum some of whose terms have several factors.
weighing
    Measure several factors, for each method, and return the evidence.
places
    The tests that need places and samples only, judged alike for every method.
one_factor
    The evidence on one factor: why no other was found.
"""
