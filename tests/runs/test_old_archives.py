"""Trees of archives in which factors held what new samples are placed by."""

from manifactor.runs.old_archives import renewed


def value(content):
    return {"value": content}


def record(name, **fields):
    return {"record": name, "fields": fields}


def factor(number, **lines):
    names = ("coefficients", "topology", "chart", "cloud", "ends")
    return record("Factor", **{name: value(f"{name} {number}") for name in names}, **lines)


def renewed_placer(*factors, **fields):
    tree = record("Factorization", factors={"tuple": list(factors)}, **fields)
    found = renewed({"fitted": {"factorization_": tree}}, 7)["fitted"]["factorization_"]
    assert found["fields"].items() >= tree["fields"].items()
    return found["fields"]["placer"]


def charts(placer):
    readings = placer["fields"]["readings"]["tuple"]
    assert all(reading["record"] == "Reading" for reading in readings)
    return [reading["fields"]["chart"]["value"] for reading in readings]


def test_factors_are_read_as_before():
    placer = renewed_placer(factor(1), factor(2), sum=value(None))
    assert (placer["record"], charts(placer)) == ("ByFunctions", ["chart 1", "chart 2"])


def test_slopes_and_shifts_of_moves_are_lines():
    none, array = value(None), {"array": "x"}
    for field in ("slopes", "shift"):
        lines = [{"slopes": none, "shift": none, field: array}, {}]
        placer = renewed_placer(factor(1, **lines[0]), factor(2))
        assert (placer["record"], charts(placer)) == ("Integrated", ["chart 1", "chart 2"])
        assert placer["fields"]["lines"]["tuple"] == [array, none]


def test_factors_of_a_divided_term_are_read_by_it():
    terms = record("Sum", summands={"tuple": [value(1), value(2), value(3)]})
    divided = record("DividedTerm", term=value(1), n_factors=value(2), diffusion=value("inner"))
    factors = [factor(number) for number in range(4)]
    placer = renewed_placer(*factors, sum=terms, divided={"tuple": [divided]})
    assert (placer["record"], placer["fields"]["sum"]) == ("ByTerms", terms)
    (inner,) = placer["fields"]["divided"]["tuple"]
    assert charts(inner["fields"]["placer"]) == ["chart 1", "chart 2"]
    assert inner["fields"]["diffusion"] == value("inner")


def test_archives_of_this_version_are_left_as_they_are():
    tree = record("Factorization", factors={"tuple": []})
    assert renewed(tree, 8) is tree
