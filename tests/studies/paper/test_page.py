from studies.paper.page import as_html, as_markdown

TABLE = {"caption": "Seconds.", "header": ["N", "ours"], "rows": [["20", "0.1"]]}


def record(quick=True):
    section = {
        "title": "A title",
        "text": ["The *first* <text> with `code`."],
        "pictures": [],
        "tables": [TABLE],
        "took": 90.0,
    }
    return {
        "settings": {"quick": quick, "seed": 3},
        "versions": {"manifactor": "1"},
        "python": "3",
        "sections": {"fig1": section},
    }


def test_the_page_in_markdown_has_an_empty_line_between_blocks():
    text = as_markdown(record())
    assert "\n\n| N | ours |\n| --- | --- |\n| 20 | 0.1 |\n\nSeconds.\n\n" in text
    assert text.endswith("All numbers: [numbers.json](numbers.json).\n")


def test_emphasis_becomes_markup_and_everything_else_is_escaped(tmp_path):
    page = as_html(record(), tmp_path)
    text = "The <em>first</em> &lt;text&gt; with <code>code</code>."
    assert f"<p>{text}</p>" in page


def test_the_footer_has_seed_minutes_and_versions(tmp_path):
    assert "Seed 3; 2 minutes; Python 3, manifactor 1." in as_markdown(record())


def test_only_a_quick_run_is_called_one():
    assert "This is a quick run" in as_markdown(record())
    assert "This is a quick run" not in as_markdown(record(quick=False))
