"""The explorer in a real browser."""

import io
import re
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
import pytest
import starfile
from PIL import Image

from manifactor.views.explorer.columns import inside

from ..conftest import READY, N, address, serving

pytestmark = pytest.mark.browser


def image(page):
    return page.locator("#seen img").get_attribute("src")


def settled(page, before):
    """The image after it has changed."""
    page.wait_for_function(
        "before => document.querySelector('#seen img').src !== before", arg=before
    )
    return image(page)


def selected(page):
    page.wait_for_selector("#selected strong")
    return int(page.locator("#selected strong").inner_text().replace(",", ""))


def drag(page, plot, corners):
    """Drag along corners given as parts of a picture's width and height."""
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*at[0])
    page.mouse.down()
    for corner in at[1:]:
        page.mouse.move(*corner, steps=5)
    page.mouse.up()


def colours(page, number):
    """How many colours, no greys, a picture of samples shows."""
    seen, vivid = screenshot(page.locator(".plot").nth(number))
    return len(np.unique(seen[vivid] // 16, axis=0))


def screenshot(plot):
    """The pixels of a picture, and which of them have a colour."""
    seen = np.asarray(Image.open(io.BytesIO(plot.screenshot())).convert("RGB")).astype(int)
    return seen, np.ptp(seen, axis=2) > 60


def test_moving_a_slider_moves_the_molecule(explorer):
    page = explorer()
    assert "an interval and a circle" in page.locator("#verdict").inner_text()
    slider = page.get_by_label("place on factor 1", exact=True)
    dial = page.get_by_role("slider", name="factor 2")
    first = image(page)
    slider.fill("0.05")
    second = settled(page, first)
    assert "within" in page.locator("#caption").inner_text()
    dial.focus()
    page.keyboard.press("PageUp")
    assert dial.get_attribute("aria-valuenow") == "210"
    settled(page, second)
    assert "210° on factor 2" in page.locator("#caption").inner_text()
    assert page.locator("#samples canvas").count() == 12
    dial.click(position={"x": 41, "y": 2})  # its top
    page.wait_for_function(
        "() => /^(8[6-9]|9[0-4])$/.test(document.querySelector('.dial').getAttribute('aria-valuenow'))"
    )


def test_a_lasso_selects_and_its_star_file_reads_back_downloaded_or_saved(
    explorer, scene, tmp_path
):
    page = explorer()
    around = [(0.2, 0.05), (0.5, 0.05), (0.5, 0.4), (0.3, 0.45), (0.2, 0.3)]
    drag(page, page.locator(".cloud.joint .plot > svg"), around)
    count = selected(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    download.value.save_as(tmp_path / "chosen.star")
    page.get_by_role("button", name="Save", exact=True).click()
    saved = page.locator("#saved:has-text('.star')").inner_text().removeprefix("Saved: ")
    assert Path(saved).read_bytes() == (tmp_path / "chosen.star").read_bytes()
    table = starfile.read(tmp_path / "chosen.star")["particles"]
    assert download.value.suggested_filename == "run-selection.star"
    assert 10 < len(table) == count
    assert table["mfFactor1"].max() < 0.6  # the left half of the picture
    assert table["mfFactor2"].min() > 180  # the upper half
    page.wait_for_function("() => location.hash.includes('lasso=')")
    pair, *_ = parse_qs(page.evaluate("location.hash.slice(1)"))["lasso"]
    x, y, corners = pair.split("~")
    polygon = [[float(value) for value in corner.split("_")] for corner in corners.split(",")]
    chosen = np.flatnonzero(inside(scene.columns, [{"x": x, "y": y, "polygon": polygon}]))
    assert [int(name.partition("@")[0]) - 1 for name in table["rlnImageName"]] == chosen.tolist()
    page.get_by_role("button", name="Clear").click()
    page.wait_for_selector("#selected:has-text('All 400 samples')")


def test_ranges_narrow_the_selection_and_half_a_range_selects_nothing(explorer, scene):
    page = explorer("range=factor1~0.25~0.75")
    line, angle = (place.displayed for place in scene.run.places)
    ends = [page.get_by_label(f"select on factor 2: {end}") for end in ("from", "to")]
    ends[0].fill("350")
    assert page.locator(".factor .hint").nth(1).is_visible()
    ends[1].fill("10")
    middle = (line >= 0.25) & (line <= 0.75)
    both = middle & ((angle >= 350) | (angle <= 10))
    page.wait_for_selector(f"body[data-selected='{both.sum()}']")
    ends[1].fill("")
    page.wait_for_selector(f"body[data-selected='{middle.sum()}']")
    assert ends[1].get_attribute("aria-invalid") == "true"


@pytest.mark.slow
def test_a_link_restores_the_view(explorer):
    view = "at=0.2,40&mode=held&colour=factor2&range=factor1~0.1~0.4"
    page = explorer(f"{view}&xy=factor2~factor1_confidence")
    left_of_the_circle = {"x": 20, "y": 150}
    page.locator(".cloud .plot > svg").nth(1).click(position=left_of_the_circle)
    page.wait_for_function("() => location.hash.includes('at=0.2%2C1')")
    page.get_by_label("Box").check()
    drag(page, page.locator(".cloud.joint .plot > svg"), [(0.2, 0.1), (0.8, 0.9)])
    page.wait_for_function("() => location.hash.includes('lasso=')")

    def seen():
        dial = page.get_by_role("slider", name="factor 2").get_attribute("aria-valuenow")
        upwards = page.locator(".joint .plot > svg").get_attribute("aria-label")
        colour = page.locator("#colour").input_value()
        held = page.get_by_label("held").is_checked()
        return dial, upwards, colour, held, image(page), page.locator("#selected").inner_text()

    link, before = page.evaluate("location.hash.slice(1)"), seen()
    assert before[2:4] == ("factor2", True)
    explorer()
    assert not any(old == new for old, new in zip(before, seen(), strict=True))
    explorer(link)
    assert seen() == before


def test_a_broken_link_shows_the_run_all_the_same(explorer):
    broken = "at=a,b&mode=x&colour=nothing&range=no~1&range=factor2~0~1000&range=constructor~0~1&page=__proto__"
    lassos = "lasso=factor1~factor2~1_2&lasso=constructor~factor1~0_0,1_1,2_0"
    page = explorer(f"{broken}&{lassos}&count=-3")
    assert page.locator("#colour").input_value() == "factor1"
    assert page.locator("#selected").inner_text().startswith("All 400")
    assert colours(page, 2) > 20


def test_a_narrow_dark_window_needs_no_scrolling_sideways_no_other_machine_and_no_token(
    window, port
):
    page = window(width=360, height=740, scheme="dark")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address(port, "#range=factor1~0~0.5"))
    page.wait_for_selector(READY)
    assert page.url.startswith(f"http://127.0.0.1:{port}/#")
    assert page.evaluate("document.cookie") == ""
    assert 0 < selected(page) < N
    for name in ("Explore", "Grid", "Spectrum", "Angles", "Evidence"):
        page.get_by_role("button", name=name).click()
        page.wait_for_selector(f"[data-shown={name.lower()}]:visible")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    tests = page.locator("#evidence .wide").first
    assert tests.evaluate("box => box.scrollWidth <= box.clientWidth")
    assert len(asked) > 10
    own = rf"http://127\.0\.0\.1:{port}/|data:|blob:"
    assert all(re.match(own, url) for url in asked)


def test_a_grid_shows_means_along_two_factors_and_a_click_goes_there(explorer, scene):
    page = explorer("page=grid&side=3")
    page.wait_for_selector("#grid .cell")
    assert page.locator("#grid .cell").count() == 9
    assert page.locator("#grid .step").all_inner_texts()[-3:] == ["0°", "120°", "240°"]
    assert (
        page.locator("#grid .cell")
        .first.get_attribute("title")
        .startswith("factor 1 0.83, factor 2 0°")
    )
    with page.expect_download() as download:
        page.get_by_role("button", name="Save picture").click()
    with Image.open(download.value.path()) as saved:
        assert saved.size == (48 + 3 * 30, 3 * 30 + 20)  # of 28 pixels each
    page.locator("#grid-across").select_option("0")  # of one factor twice there is no grid
    page.wait_for_function("() => document.getElementById('grid-up').value === '1'")
    page.get_by_label("Steps").fill("2")
    page.wait_for_function("() => document.querySelectorAll('#grid .cell').length === 4")
    page.locator("#grid .cell").nth(1).click()
    page.wait_for_function("() => location.hash.includes('at=')")
    page.wait_for_selector("[data-shown=explore]:visible")
    assert page.evaluate("JSON.parse(document.body.dataset.near)") == [[0.75], [180]]
    assert page.get_by_label("held").is_checked()


def test_a_stopped_explorer_is_named_on_the_page(scene, browser):
    context = browser.new_context()
    page = context.new_page()
    with serving(scene) as port:
        page.goto(address(port))
        page.wait_for_selector(READY)
    page.get_by_label("place on factor 1", exact=True).fill("0.9")
    page.wait_for_selector("#problem:has-text('does not answer')")
    context.close()
