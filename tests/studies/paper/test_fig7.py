import pytest

from studies.paper.fig7 import Fig7Settings, fig7, pure_share, side_shares


def test_functions_of_a_torus_depend_on_one_circle_each(torus_found):
    shares = side_shares(torus_found)
    assert [share.shape[1] for share in shares] == [2, 2]
    assert pure_share(shares) > 0.9
    assert pure_share(shares, pure_r2=1.1) == 0


@pytest.mark.slow
def test_every_way_has_a_row_and_a_panel(small, cubes):
    section = fig7(small, cubes, recipe=Fig7Settings(most_rows=6))
    (table,) = section.tables
    assert [row[0] for row in table.rows] == list(section.numbers)
    assert {"three at once (Max-k-Cut)", "default"} <= set(section.numbers)
    panels = section.pictures[0].figure.get_axes()
    assert len(panels) >= len(table.rows)
    for ax, row in zip(panels, table.rows, strict=False):
        shown = ax.get_images()[0].get_array()
        assert len(shown) <= max(6, int(row[1]))
