"""The explorer in a real browser."""

import io
import re

import numpy as np
import pytest
import starfile
from PIL import Image

from manifactor.views.explorer.scene import open_scene

from ..conftest import TOKEN, N, serving

READY = "body[data-ready][data-near]"


@pytest.fixture
def explorer(window, port):
    """Opens the explorer at a view, and waits until it stands."""

    def opened(view="", **options):
        page = window(**options)
        page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}{view}")
        page.wait_for_selector(READY)
        return page

    return opened


def image(page):
    return page.locator("#seen img").get_attribute("src")


def settled(page, before):
    """The image after it has changed."""
    page.wait_for_function("before => document.querySelector('#seen img').src !== before", arg=before)
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
    seen = np.asarray(Image.open(io.BytesIO(page.locator(".plot").nth(number).screenshot())).convert("RGB"))
    vivid = np.ptp(seen.astype(int), axis=2) > 60
    return len(np.unique(seen[vivid] // 16, axis=0))


def test_moving_a_slider_moves_the_molecule(explorer):
    page = explorer()
    assert "A product of two independent factors: an interval and a circle." in page.locator("#verdict").inner_text()
    slider, dial = page.get_by_label("place on factor 1", exact=True), page.get_by_role("slider", name="factor 2")
    first = image(page)
    slider.fill("0.05")
    second = settled(page, first)
    assert "within" in page.locator("#caption").inner_text()
    dial.focus()
    page.keyboard.press("PageUp")
    assert dial.get_attribute("aria-valuenow") == "210"
    settled(page, second)
    assert "210° on factor 2" in page.locator("#caption").inner_text()
    assert page.locator("#samples img").count() == 12
    dial.click(position={"x": 41, "y": 2})  # its top
    page.wait_for_function(
        "() => /^(8[6-9]|9[0-4])$/.test(document.querySelector('.dial').getAttribute('aria-valuenow'))"
    )


def test_a_lasso_selects_and_its_star_file_reads_back(explorer, scene, tmp_path):
    page = explorer()
    joint = page.locator(".cloud.joint .plot svg")
    drag(page, joint, [(0.2, 0.1), (0.5, 0.1), (0.5, 0.8), (0.2, 0.8)])
    count = selected(page)
    assert 20 < count < N - 20
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    download.value.save_as(tmp_path / "chosen.star")
    table = starfile.read(tmp_path / "chosen.star")["particles"]
    assert len(table) == count
    assert download.value.suggested_filename == f"run-{count}.star"
    low, high = table["mfFactor1"].min(), table["mfFactor1"].max()
    inside = (scene.run.places[0].coordinate >= low) & (scene.run.places[0].coordinate <= high)
    assert 0.05 < low < high < 0.6
    assert inside.sum() >= count
    page.get_by_role("button", name="Clear").click()
    page.wait_for_selector("#selected:has-text('All 400 samples')")


def test_ranges_narrow_the_selection_with_exact_counts(explorer, scene):
    page = explorer()
    line, angle = (place.coordinate for place in scene.run.places)
    page.get_by_label("select on factor 1: from").fill("0.25")
    page.get_by_label("select on factor 1: to").fill("0.75")
    middle = (line >= 0.25) & (line <= 0.75)
    page.wait_for_selector(f"body[data-selected='{middle.sum()}']")
    page.get_by_label("select on factor 2: from").fill("350")
    page.get_by_label("select on factor 2: to").fill("10")
    both = middle & ((angle >= 350) | (angle <= 10))
    page.wait_for_selector(f"body[data-selected='{both.sum()}']")
    page.get_by_role("button", name="Download").wait_for()
    assert selected(page) == both.sum()


def test_a_link_restores_the_view(explorer):
    page = explorer(view="#at=0.2,40&mode=held&colour=factor2&range=factor1~0.1~0.4")
    page.locator(".cloud .plot svg").nth(1).click(position={"x": 20, "y": 150})  # the left of the circle
    page.wait_for_function("() => location.hash.includes('at=0.2%2C1')")
    page.get_by_label("Box").check()
    drag(page, page.locator(".cloud.joint .plot svg"), [(0.2, 0.1), (0.8, 0.9)])
    page.wait_for_function("() => location.hash.includes('lasso=')")
    before = selected(page), image(page), page.get_by_role("slider", name="factor 2").get_attribute("aria-valuenow")
    again = explorer(view=page.evaluate("location.hash"))
    again.wait_for_selector(f"body[data-selected='{before[0]}']")
    after = selected(again), image(again), again.get_by_role("slider", name="factor 2").get_attribute("aria-valuenow")
    assert after == before
    assert again.get_by_label("held").is_checked()
    assert again.locator("#colour").input_value() == "factor2"


def test_a_broken_link_shows_the_run_all_the_same(explorer):
    page = explorer(view="#at=a,b&mode=x&colour=nothing&range=no~1&lasso=factor1~factor2~1_2&page=__proto__&count=-3")
    assert page.locator("#colour").input_value() == "factor1"
    assert page.locator("#selected").inner_text().startswith("All 400")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_needs_no_scrolling_sideways(explorer, scheme):
    page = explorer(width=360, height=740, scheme=scheme)
    for name in ("Explore", "Spectrum", "Angles", "Evidence"):
        page.get_by_role("button", name=name).click()
        page.wait_for_selector(f"[data-shown={name.lower()}]:visible")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_spectrum_angles_and_evidence_have_their_pages(explorer, scene):
    page = explorer(view="#page=spectrum")
    page.wait_for_selector("#spectrum circle")
    assert page.locator("#spectrum circle").count() == len(scene.fit.spectrum_.eigenvalues) - 1
    page.get_by_role("button", name="Angles").click()
    page.wait_for_selector("#angles rect.cell")
    page.get_by_role("button", name="Evidence").click()
    page.wait_for_selector("#evidence table")
    assert "Half of the samples alone" in page.locator("#evidence").inner_text()


def test_numbers_without_images_show_their_features(torus_run, window):
    with serving(open_scene(torus_run)) as port:
        page = window()
        page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}")
        page.wait_for_selector(READY)
        means = page.locator("#seen svg").get_attribute("aria-label")
        page.get_by_role("slider", name="factor 1").press("PageDown")
        page.wait_for_function(
            "means => document.querySelector('#seen svg').getAttribute('aria-label') !== means", arg=means
        )
        assert page.locator("#samples tbody tr").count() == 12
        assert page.locator("#colour option").all_inner_texts()[-1] == "column 4"
        page.close()  # before the server


@pytest.mark.parametrize("webgl", [True, False])
def test_samples_are_drawn_with_a_graphics_card_and_without(window, port, webgl):
    page = window()
    if not webgl:
        page.add_init_script(
            "const get = HTMLCanvasElement.prototype.getContext;"
            "HTMLCanvasElement.prototype.getContext = function (kind, ...more) {"
            " return kind === 'webgl' ? null : get.call(this, kind, ...more); }"
        )
    page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}")
    page.wait_for_selector(READY)
    assert colours(page, 2) > 20


def test_nothing_is_asked_of_other_machines(port, window):
    page = window()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}")
    page.wait_for_selector(READY)
    assert len(asked) > 10
    assert all(re.match(rf"http://127\.0\.0\.1:{port}/|data:|blob:", address) for address in asked)


def test_a_stopped_explorer_is_named_on_the_page(scene, browser):
    context = browser.new_context()
    page = context.new_page()
    with serving(scene) as port:
        page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}")
        page.wait_for_selector(READY)
    page.get_by_label("place on factor 1", exact=True).fill("0.9")
    page.wait_for_selector("#problem:has-text('does not answer')")
    context.close()
