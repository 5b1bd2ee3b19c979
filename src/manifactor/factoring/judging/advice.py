"""What a verdict means in words, and what to do next."""

# The sense in which data are a product, where all tests were passed.
SENSES = {
    "geometry": (
        "They are a product of lengths: directions of different factors are "
        "orthogonal, and lengths along one do not depend on the others."
    ),
    "density": (
        "They are a product of lengths and of density: the factors are orthogonal, and "
        "the samples are distributed independently on them."
    ),
    "volume": (
        "They are a product in units of the distance between samples: lengths along "
        "all factors change together, with the density."
    ),
    "sum": (
        "They are a sum: each factor moves the samples by a function of its own, "
        "whatever the others do."
    ),
}

# What a failure of a test means for one factor.
ANSWERS = {
    "samples": "cannot tell",
    "uncertainty": "cannot tell",
    "clusters": "cannot tell",
    "evenness": "cannot tell",
    "missing dimensions": "cannot tell",
    "triplets": "cannot tell",
    "further product": "no product",
}

# What to do next, by the test that failed.
ADVICE = {
    "product": (
        "Fit a part of the samples, such as one range of a column: a product may hold "
        "there."
    ),
    "completeness": (
        "Follow the samples once around a circle: on a twisted product they come back "
        "reversed."
    ),
    "twist": "Fit a part of the samples: a twisted product is one on each half.",
    "modulation": "Fit a part of the samples: a twisted product is one on each half.",
    "undivided": "Ask for one factor more with `n_factors`, and compare.",
    "explained": (
        "Look at the columns that the factors do not explain: without them the fit may "
        "show a product."
    ),
    "lowest functions": "Add samples, or ask for one factor more with `n_factors`.",
    "leakage": "Use the coordinates together: each tells something of the other.",
    "agreement": "Add samples, or remove noise: average, or leave out noisy columns.",
    "dimensions": "Raise `n_functions`, or scale up the columns of a small factor.",
    "folds": (
        "Use the other factors, but not the coordinate of the folded one: samples of "
        "several kinds share it. More samples where they are few along it would help."
    ),
    "filling": (
        "Use the coordinates, they are right; but not every combination of places "
        "occurs."
    ),
    "skew": (
        "Use the coordinates, they tell samples apart; but moving along one factor "
        "moves a sample along the other, too."
    ),
    "crossing": (
        "Use the coordinates, they tell samples apart; but the factors are orthogonal "
        "in a part of the data only."
    ),
    "modulation in data": (
        "Use the coordinates, they are right; but steps along one factor have other "
        "lengths where the other factor has another place."
    ),
    "identified": (
        "Choose units that mean something, or columns in which the factors have edges: "
        "standardised columns give other axes, as good as these."
    ),
    "sum": "Use the factors with care: much of the data is no function of them.",
    "own share": (
        "Use the other factors: one of them explains little that the others do not."
    ),
    "structured rest": (
        "Use the factors, and look at what they leave: it is no noise, and may be a "
        "factor of its own."
    ),
    "axes": (
        "Take the factors together: other axes explain the samples nearly as well."
    ),
    "independence": (
        "Use the coordinates, but not as independent numbers: one tells of the other."
    ),
    "parts": (
        "Scale up the columns of a small factor: it is too small beside the others."
    ),
    "terms": "Take the data as one factor: its embedding tells samples apart.",
    "reliability": "Average, or leave out noisy columns: single places are uncertain.",
    "samples": "Add samples.",
    "uncertainty": "Add samples, or remove noise: average, or leave out noisy columns.",
    "clusters": "Fit each cluster by itself, or add samples between them.",
    "evenness": (
        "Take a logarithm or ranks of columns with long tails, or thin the samples "
        "where they lie densest."
    ),
    "further product": (
        "Fit a part of the samples, or take the data as one factor: its embedding "
        "tells samples apart."
    ),
    "missing dimensions": (
        "Raise `n_functions`, or scale up the columns of a small factor."
    ),
    "blocks": (
        "Take the data as one factor: its embedding tells samples apart. Columns of "
        "very different units can hide a product: compare with standardised ones."
    ),
    "triplets": "Leave `method` at its default.",
    "connected": "Leave `method` at its default.",
    "groups": "Leave `method` at its default.",
}
