import pytest

from manifactor._support.stages import Stages


def test_the_callback_hears_a_stage_begin_and_end_and_its_time_is_kept():
    heard = []
    stages = Stages(lambda *event: heard.append(event))
    with stages.timed("a"):
        stages.report("a", 0.5)
    assert heard == [("a", 0.0), ("a", 0.5), ("a", 1.0)]
    assert stages.timings.keys() == {"a"}


def test_a_stage_that_fails_is_not_timed():
    stages = Stages()
    with pytest.raises(ZeroDivisionError), stages.timed("a"):
        stages.once("a", lambda: 1 // 0)
    assert stages.timings == {}


def test_a_stage_in_one_piece_gives_its_result():
    assert Stages().once("a", lambda: 1) == 1
