"""The grammar of the commands `bench` and `reproduce`."""

from manifactor.command.options import add, add_cluster, add_out, add_overwrite, add_seed

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
All recipes take half an hour on 2 cores."""


def bench_options(command) -> None:
    """Add the options of `bench`."""
    # Speed and memory are measured by the scripts in benchmarks/.
    text = (
        "what to measure: accuracy, the rate of right answers over random seeds; or "
        "calibration, how often each verdict on random problems is right"
    )
    add(command, "question", text, choices=["accuracy", "calibration"])
    text = "run a few small cases only, which takes a minute or two"
    add(command, "--quick", text, action="store_true")
    text = "calibration: number of random problems (default: 2000, or 20 with --quick)"
    add(command, "--problems", text, type=int, metavar="N")
    text = (
        "folder for QUESTION.jsonl (a line for each fit), QUESTION.md (the table) and "
        "the picture of calibration"
    )
    add_out(command, text, metavar="FOLDER", default=".")
    add_overwrite(command, "replace the files of an earlier benchmark")
    add_cluster(command, "fits")


def reproduce_options(command) -> None:
    """Add the options of `reproduce`."""
    text = "all, or some of the recipes below (default: all)"
    add(command, "recipes", text, metavar="RECIPE", nargs="*")
    text = "use few samples: a check that everything runs, in about a minute"
    add(command, "--quick", text, action="store_true")
    add_seed(command)
    text = "folder that collects the results of all recipes"
    add_out(command, text, metavar="FOLDER", default="reproduction")
    add_overwrite(command, "run recipes again whose results the folder already has")
    add_cluster(command, "fits")
