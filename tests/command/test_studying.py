"""`bench` and `reproduce` as commands; the studies have tests of their own."""

import pytest

from manifactor.studies.paper import recipes

from .conftest import manifactor, refusal


def test_an_earlier_benchmark_is_not_replaced(folder, capsys):
    (folder / "mine.jsonl").touch()
    message = refusal("bench accuracy --quick --out mine", folder, capsys)
    assert "must not exist yet; mine.jsonl does" in message


@pytest.mark.parametrize("stopped", [False, True])
def test_recipes_are_told_of_as_they_end(folder, capsys, monkeypatch, stopped):
    def reproduce(names, out, settings, *, overwrite, callback):
        yield "fig1", None
        yield "table1", 12.3
        if stopped:
            raise KeyboardInterrupt

    monkeypatch.setattr(recipes, "reproduce", reproduce)
    assert manifactor("reproduce --out made") == (130 if stopped else 0)
    captured = capsys.readouterr()
    assert captured.out.startswith(
        "fig1     already done; --overwrite runs it again\ntable1   12 s\n"
    )
    assert ("made/index.html" in captured.out) is not stopped
    assert ("repeat the command to continue" in captured.err) is stopped


def test_an_unknown_recipe_is_refused(folder, capsys):
    assert "fig99" in refusal("reproduce fig99", folder, capsys)
