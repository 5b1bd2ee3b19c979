"""Measurements as lines of JSON, printed and appended to benchmarks/results.jsonl."""

import json
import platform
from pathlib import Path

import numpy
import scipy
import sklearn

import manifactor

RESULTS = Path(__file__).parent / "results.jsonl"


def record(question: str, **fields) -> None:
    """Print a measurement and append it to the results."""
    versions = {m.__name__: m.__version__ for m in (manifactor, numpy, scipy, sklearn)}
    line = json.dumps(
        {"question": question, **fields, "versions": versions, "python": platform.python_version()}
    )
    print(line)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
