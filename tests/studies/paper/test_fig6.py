from dataclasses import replace

import pytest

from studies.paper.fig6 import NAMES, Fig6Settings, embeddings, fig6


def test_the_default_embeds_both_circles_of_a_torus(torus_found):
    shown = embeddings(torus_found, torus_found, 0)
    for ways in shown:
        own, other = ways["default"].r2
        assert own > 0.95
        assert other < 0.1
        assert ways["diffusion map"].values.shape == (800, 2)


def test_a_factor_that_was_not_found_shows_nothing(torus_found):
    half = replace(torus_found, places=torus_found.places[:1])
    shown = embeddings(half, torus_found, 0)
    missing = [ways["published"] for ways in shown if ways["published"].values is None]
    assert [one.r2 for one in missing] == [[0.0, 0.0]]


@pytest.mark.slow
def test_words_and_table_agree_about_what_mixes(small, lab):
    section = fig6(small, lab, recipe=Fig6Settings(mixed_r2=1.1))
    (table,) = section.tables
    assert len(table.rows) == 2 * len(NAMES)
    assert table.header[2:] == ["published", "default", "diffusion map", "FastICA"]
    own, other = section.numbers["torus"][0]["published"]
    assert table.rows[4][2] == f"{own:.2f} / {other:.2f}"
    # Above 1 everything counts as mixed.
    assert f"large circle of the torus ({own:.2f} of it" in section.text[1]
