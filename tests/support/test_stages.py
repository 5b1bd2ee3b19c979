import numpy as np
import pytest

from manifactor._support.stages import Stages, fingerprint


def test_a_stage_is_made_once_for_the_same_key():
    stages = Stages()
    assert stages.recall("a", "key", lambda: 1) == 1
    assert stages.recall("a", "key", lambda: 2) == 1
    assert stages.recall("a", "other key", lambda: 3) == 3


def test_kept_results_serve_another_computation_without_being_changed_by_it():
    first = Stages()
    first.recall("a", "key", lambda: 1)
    second = Stages(first.kept)
    assert second.recall("a", "other key", lambda: 2) == 2
    assert first.kept == {"a": ("key", 1)}


def test_the_callback_hears_a_stage_begin_and_end_and_its_time_is_kept():
    heard = []
    stages = Stages().start(lambda *event: heard.append(event))
    with stages.timed("a"):
        stages.report("a", 0.5)
    assert heard == [("a", 0.0), ("a", 0.5), ("a", 1.0)]
    assert stages.timings.keys() == {"a"}
    assert stages.start().timings == {}


def test_a_stage_that_fails_is_not_timed_and_not_kept():
    stages = Stages().start()
    with pytest.raises(ZeroDivisionError), stages.timed("a"):
        stages.recall("a", "key", lambda: 1 // 0)
    assert stages.timings == {}
    assert stages.kept == {}


def test_random_stages_depend_on_a_seed_that_is_fixed_and_only_then():
    keys = [Stages().start(seed=seed).random_key("X") for seed in (0, 0, 1, None, None)]
    assert keys[0] == keys[1] != keys[2]
    assert keys[3] == keys[4]


def test_settings_that_read_alike_and_arrays_of_the_same_bytes_have_other_fingerprints():
    assert fingerprint(2, 1, 110) != fingerprint(21, 1, 10)
    numbers = np.zeros(4)
    others = (numbers.reshape(2, 2), numbers.view(np.int64))
    assert fingerprint(numbers) not in map(fingerprint, others)
