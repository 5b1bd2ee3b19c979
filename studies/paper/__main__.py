"""Make the figures and the table of the paper, with numbers: python -m studies.paper."""

import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence

from studies.paper import recipes
from studies.paper.section import Settings
from studies.running import exit_code, parser

# Recipes are numbered as in the code that accompanies the paper; the numbers of the printed figures
# differ and stand in parentheses.
RECIPES = """recipes, numbered as in the paper's code (the paper prints four figures):
  fig1    eigenfunctions of a rectangle, analytic and computed
  fig2    noisy rectangle: functions of each side (the paper's Figure 1)
  fig3    simulated cryo-EM images, three trials (Figure 2)
  fig4    the two criteria (Figure 3)
  fig5    separability matrix, similarities
  fig6    embeddings of each factor (Figure 4)
  fig7    cube: three factors
  trials  the paper's method and the default method over seeds; 10 minutes
  beyond  repeated eigenvalues, spheres, a robot arm
  table1  running times (Table 1); 6 minutes
All recipes take half an hour on 2 cores. Those whose results the folder already has are skipped."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the recipes that the command line names, all by default."""
    text = "Make every figure and the table of Product Manifold Learning, with numbers."
    grammar = parser(text, out="reproduction")
    grammar.formatter_class, grammar.epilog = RawDescriptionHelpFormatter, RECIPES
    grammar.add_argument("recipes", metavar="RECIPE", nargs="*", help="default: all")
    grammar.add_argument("--seed", type=int, default=0)
    options = grammar.parse_args(argv)
    settings = Settings(quick=options.quick, seed=options.seed)
    made = recipes.reproduce(options.recipes, options.out, settings, overwrite=options.overwrite)
    for name, seconds in made:
        took = "already done; --overwrite runs it again" if seconds is None else f"{seconds:.0f} s"
        print(f"{name:<8} {took}", flush=True)
    print(f"Report: {options.out / 'index.html'}. All numbers: {options.out / recipes.NUMBERS}.")


if __name__ == "__main__":
    sys.exit(exit_code(main))
