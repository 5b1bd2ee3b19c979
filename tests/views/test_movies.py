import base64

import pytest
from PIL import features

from manifactor.cryoem.pictures import movie_bytes

PLAYED = """async () => {
  const video = document.querySelector("video");
  await video.play();
  await new Promise((done) => { video.onended = done; });
  return [video.duration, video.videoWidth, video.videoHeight];
}"""


@pytest.mark.browser
@pytest.mark.skipif(not features.check("avif"), reason="this Pillow encodes no AV1")
def test_a_browser_plays_the_movie_to_its_end(window, rng):
    images = rng.normal(size=(4, 73, 73))
    movie = movie_bytes(images, circular=True, seconds_per_frame=0.05)[".mp4"]
    page = window()
    address = f"data:video/mp4;base64,{base64.b64encode(movie).decode()}"
    page.set_content(f"<video muted src='{address}'></video>")
    duration, *size = page.evaluate(PLAYED)
    assert duration == pytest.approx(0.2)
    assert size == [219, 219]
