"""Pictures as the page gets them."""

import io
from base64 import b64decode

import numpy as np
import pytest
from PIL import Image

from manifactor.views.explorer.plain_png import plain_png
from manifactor.views.explorer.previews import data_url


def opened(content):
    return np.asarray(Image.open(io.BytesIO(content)))


# Parts that are not compressed have at most 65,535 bytes: a large picture has several.
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (108, 108), (300, 400)])
def test_a_plain_png_file_holds_the_very_grey_levels(rng, shape):
    grey = rng.integers(0, 256, shape, dtype=np.uint8)
    assert (opened(plain_png(grey)) == grey).all()
    assert (opened(plain_png(grey[::-1])) == grey[::-1]).all()


def test_only_pictures_beyond_the_largest_side_are_shrunk(rng):
    image = rng.normal(size=(40, 60))
    sides = {}
    for largest in (100, 60, 30):
        head, content = data_url(image, largest=largest).split(",")
        assert head == "data:image/png;base64"
        sides[largest] = opened(b64decode(content)).shape
    assert sides == {100: (40, 60), 60: (40, 60), 30: (20, 30)}
