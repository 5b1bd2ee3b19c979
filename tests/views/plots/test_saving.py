import io
import re

import numpy as np
import pytest
from PIL import Image

from manifactor.views import plots


def test_a_drawing_for_a_page_shares_no_names_with_another_and_is_the_same_each_time(torus):
    def drawing(name):
        with plots.style(plots.PAGE):
            figure = plots.new_figure(3, 3)
            plots.embedding(figure.subplots(), torus, 0)
            figure.axes[0].plot([0, 1], [0, 1], color="black")
            return plots.svg(figure, name)

    one, other = drawing("one"), drawing("other")
    names = re.findall(r' id="([^"]+)"', one)
    assert names
    assert not set(names) & set(re.findall(r' id="([^"]+)"', other))
    assert one == drawing("one")
    assert one.startswith("<svg viewBox=")
    for gone in ("<?xml", "DOCTYPE", "metadata", "xmlns", "<style", "#000000", plots.INK):
        assert gone not in one
    assert one.count("data:image/png;base64,") == 1  # the cloud


@pytest.mark.slow
def test_a_picture_is_a_pdf_and_a_png_of_few_colours_and_the_same_each_time(torus):
    def made():
        with plots.style():
            figure = plots.new_figure(3, 2)
            plots.embedding(figure.subplots(), torus, 0)
            return plots.picture(figure, settings=plots.PlotSettings(palette=16))

    files = made()
    assert files[".pdf"].startswith(b"%PDF")
    image = Image.open(io.BytesIO(files[".png"]))
    assert image.size == (480, 320)
    assert len(np.unique(np.asarray(image))) <= 16
    assert files == made()
