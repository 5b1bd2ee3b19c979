"""From measured numbers to the evidence on a factorization, and its verdict.

criteria
    The senses of a product, and the table of all tests: limit, meaning, advice and more.
evidence
    `Evidence`: the tests of a fit, the verdict that follows, what to do next, in words.
"""
