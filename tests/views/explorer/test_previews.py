from base64 import b64decode

import numpy as np
import pytest

from manifactor.views.explorer.previews import pictures


@pytest.mark.parametrize(("sides", "shown"), [((150, 300), [64, 128]), ((128, 90), [128, 90])])
def test_thumbnails_are_shrunk_to_their_longest_side(rng, sides, shown):
    singles = rng.normal(size=(3, *sides))
    found = pictures(singles[0], singles)
    assert found["thumbnail_shape"] == shown
    assert len(b64decode(found["thumbnails"])) == 3 * np.prod(shown)
