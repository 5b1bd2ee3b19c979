from dataclasses import replace

import pytest

from studies.paper.fig5 import CUT_SHAPES, between_groups, fig5


def test_what_passes_gamma_is_counted(small, lab):
    section = fig5(small, lab)
    assert list(section.numbers) == list(CUT_SHAPES)
    torus = section.numbers["torus"]
    assert torus["passed"] == (torus["best_similarity"] > 0.6).sum()
    total = len(torus["best_similarity"])
    assert f"Torus: {torus['passed']} of {total} functions pass" in section.text[1]


def test_the_share_between_groups_is_that_of_the_cut(lab):
    found = lab.by_method["published"]
    _, matrix = found.triplets.separability()
    across = found.cut.labels[:, None] != found.cut.labels
    assert between_groups(found) == pytest.approx(matrix[across].sum() / matrix.sum())
    assert between_groups(replace(found, cut=None)) == 0
