"""Make a fresh environment, install the built wheel into it and run tests there.

The workflow of the repository runs this on every system; here it shows the same for
every Python that is installed:

    python3 .ci/environment.py --python python3.12 --dependencies latest

`--dependencies minimum` installs exactly the lowest versions that pyproject.toml
allows.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Checks:
    """What is installed beside the wheel, and what is run."""

    # torch is not among them: it is large, and the tests that need it are left out.
    extras: tuple[str, ...] = ("ann", "cluster", "cryoem", "explore", "plots")
    tools: tuple[str, ...] = (
        "clarabel",
        "hatchling",
        "hypothesis",
        "pytest",
        "pytest-xdist",
        "pyyaml",
    )
    markers: str = "not slow and not browser and not torch and not nightly"


def lowest_versions(project: dict, extras: tuple[str, ...]) -> list[str]:
    """Pin every requirement `name>=version` of the package to `name==version`."""
    optional = project["optional-dependencies"]
    required = [*project["dependencies"], *(r for e in extras for r in optional[e])]
    pins = {re.sub(r"\s*>=\s*", "==", requirement) for requirement in required}
    return sorted(pins)


def call(*command: str | Path, **options) -> None:
    """Show a command and run it; end with its exit code if it fails."""
    print("$", *command, flush=True)
    code = subprocess.run([str(part) for part in command], **options).returncode
    if code:
        sys.exit(code)


def install(python: Path, folder: Path, checks: Checks, *, minimum: bool) -> None:
    """Build the wheel and install it with its extras and the test tools."""
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    call(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    (wheel,) = folder.glob("manifactor-*.whl")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pins = lowest_versions(project["project"], checks.extras) if minimum else []
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(pins), encoding="utf-8")
    wanted = f"{wheel}[{','.join(checks.extras)}]"
    call(*pip, "install", "--quiet", "-c", constraints, wanted, *checks.tools)
    call(*pip, "check")
    call(*pip, "freeze")


def run_tests(python: Path, checks: Checks, selected: list[str]) -> None:
    """Run the fast tests on the installed wheel, without the source on the path."""
    # Warnings of other versions of the dependencies are theirs: they fail `make test`,
    # which has one set of versions, but not these runs.
    options = ["-q", "-rs", "-n", "2", "-W", "default", "-p", "no:cacheprovider"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    call(
        *(python, "-m", "pytest", "-o", "addopts=", *options),
        *("-m", checks.markers, *(selected or ["tests"])),
        cwd=ROOT,
        env=environment,
    )


def main() -> None:
    """Read the options, and make, fill and test one environment."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="default: this one")
    kinds = ["minimum", "latest"]
    parser.add_argument("--dependencies", choices=kinds, default="latest")
    parser.add_argument("tests", nargs="*", help="files of tests; default: all")
    arguments = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        call(arguments.python, "-m", "venv", folder / "environment")
        scripts = "Scripts" if os.name == "nt" else "bin"
        python = folder / "environment" / scripts / "python"
        minimum = arguments.dependencies == "minimum"
        install(python, folder, checks, minimum=minimum)
        run_tests(python, checks, arguments.tests)


if __name__ == "__main__":
    main()
