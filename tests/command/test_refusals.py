"""What commands cannot use: one line that says why, exit code 2, nothing written."""

import os
import pickle
import shutil

import numpy as np
import pytest

from manifactor.cryoem.files.stacks import write_stack

from ..cryoem.star_files import loop, row
from .conftest import POSE, manifactor, refusal, write_star

N = 60


def write_tables(rng):
    X = np.cumsum(rng.normal(size=(80, 2)), axis=0)
    np.save("x.npy", X)
    np.savetxt("wide.csv", np.zeros((80, 3)), delimiter=",")
    np.savetxt("timed.csv", np.c_[np.arange(80), X], delimiter=",", header="t,x,y", comments="")
    os.mkdir("inside")
    shutil.copy("x.npy", "inside")
    for name, text in {
        "nan.csv": "1,2\n3,4\n5,nan\n6,7\n8,9\n",
        "huge.csv": "x,y\n1,2\n3,4\n1.7976931348623157e308,6\n7,8\n",
        "damaged.npy": "no array",
        "inside/views.csv": "view\n",
        "old.html": "",
        "map.png": "",
    }.items():
        with open(name, "w") as file:
            file.write(text)


def write_particles(rng):
    images = rng.standard_normal((N, 16, 16), dtype=np.float32)
    write_stack("stack.mrcs", images, pixel_size=5.0)
    rot, psi = rng.uniform(-180, 180, (2, N))
    poses = dict(zip(POSE, (rot, np.degrees(np.arccos(rng.uniform(-1, 1, N))), psi), strict=True))
    write_star("all.star", poses)
    write_star("one.star", {**poses, POSE[0]: 0 * rot, POSE[1]: 0 * rot})
    write_star("bare.star", {"rlnRandomSubset": np.ones(N)})
    lines = [row(f"{k}@stack.mrcs", str(1 + (k > 40)), str(1 + k % 2)) for k in range(1, N + 1)]
    labels = "rlnImageName rlnClassNumber rlnOpticsGroup"
    with open("classes.star", "w") as file:
        file.write(loop("particles", labels, lines))
    with open("z.pkl", "wb") as file:
        pickle.dump(rng.normal(size=(N, 2)), file)


@pytest.fixture(scope="module")
def inputs(molecule, run, tmp_path_factory):
    """A folder with what is given to the commands."""
    folder = tmp_path_factory.mktemp("inputs")
    shutil.copytree(molecule, folder / "data")
    shutil.copytree(run, folder / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_tables(np.random.default_rng(0))
        write_particles(np.random.default_rng(0))
        os.mkdir("empty")
        for suffix in (".star", ".cs", ".pkl"):
            os.mkfifo(f"pipe{suffix}")
            os.symlink(f"loop{suffix}", f"loop{suffix}")
        os.symlink("nowhere", "link")
    return folder


PARSED = [
    ("fitt", "there is no command 'fitt'; did you mean fit?"),
    ("xyzzy", "there is no command 'xyzzy'. Choose from demo, simulate"),
    ("fit", "the following arguments are required: INPUT"),
    ("fit x.npy --n-factors two", "invalid whole number or auto value: 'two'"),
    ("fit x.npy --bandwidth wide", "invalid number or auto or local value"),
    ("fit x.npy --colour", "arguments: --colour. See manifactor fit --help."),
    ("--colour", "the following arguments are required: COMMAND"),
    ("select run", "required: --out"),
    ("completion tcsh", "choose from"),
    ("demo --out ''", "argument --out: must be the name of a file or folder; got ''."),
    ("simulate torus --noise -1", "must be a finite number of at least 0; got '-1'"),
    ("simulate molecule --snr 0", "must be a number above 0; got '0'"),
    ("select run --out a.csv --min-confidence 2", "in [0, 1]; got '2'"),
    ("fit x.npy --seed -1", "must be a whole number in [0, 4294967295]; got '-1'"),
    ("views one.star --rows 0", "must be a whole number of at least 1; got '0'"),
    ("fit one.star --view 180", "two angles in degrees, ROT,TILT; got '180'"),
    ("fit one.star --view 0,999", "tilt of a view must lie between -180 and 180"),
]
OUTPUTS = [
    ("fit damaged.npy --out gone/run", "must be a writable folder: No such file"),
    ("fit damaged.npy --out x.npy/run", "must be a writable folder: Not a directory"),
    (f"fit damaged.npy --out {250 * 'x'}", "cannot have the name 'xxx"),
    ("fit damaged.npy --out old.html", "It is not a run folder"),
    ("fit damaged.npy --out link", "It is not a run folder"),
    ("fit inside/x.npy --out inside", "inside"),
    ("fit nan.csv inside/x.npy --out inside --overwrite", "lies in"),
    ("fit all.star --all-views --out .", "all.star lies in ."),
    ("simulate torus --out n.txt", "--out must end in .npz; got n.txt."),
    ("simulate molecule --out empty", "empty was not written by this command"),
    ("demo --out run", "the demo replaces earlier demos only; run is another run"),
    ("views one.star --out map.png", "must not exist yet; map.png does"),
    ("views one.star --out map.jpg", "must end in .png, .svg, .pdf; got map.jpg"),
    ("report run --out page", "--out must end in .html; got page."),
    ("report run --out old.html", "old.html does. Choose another --out, or"),
    ("select run --out a.docx", "--out must end in one of .star, .cs"),
    ("select run --out a.cs", "choose --out with the same ending"),
    ("select run --out data", "data was not written by this command"),
    ("average run --factor 1 --out data", "data was not written by this command"),
    ("compare run run --out x.txt", "--out must end in .csv"),
    ("explore run --save-to no/such/folder", "must be a writable folder"),
]
SAMPLES = [
    ("fit x.npy --n-factors 99", "--n-factors must be 'auto' or a whole number in [1, 6]"),
    ("fit x.npy --bandwidth local --n-neighbors all", "error: --bandwidth local needs"),
    ("fit huge.csv", "1.8e+308, in row 2, column 'x' (line 4 of huge.csv). Such"),
    ("fit x.npy --width 5", "--width is the angle around a view"),
    ("fit x.npy --phase-flip --standardise", "--phase-flip does not go with coordinates"),
    ("fit x.npy --class 1", "manifactor select --column rlnClassNumber"),
    ("fit x.npy --datadir .", "x.npy. Name their particles with --particles"),
    ("fit x.npy --cluster local", "this is one fit, which runs in one process"),
    ("fit x.npy nan.csv --cluster none.json", "none.json cannot be used: no such"),
    ("fit x.npy x.npy --dry-run", "must have different names"),
    ("fit x.npy inside/x.npy --resume", "no checkpoint to resume in .x-run.stages"),
    ("fit x.npy --resume", ".x-run.stages"),
    ("fit wide.csv --coordinates parquet --out new", "of which rows are read; got wide.csv."),
    ("fit x.npy --coordinates parquet --particles one.star", "Add --coordinates csv"),
]
MOVES = [
    ("fit timed.csv --time s", "--time: there is no column 's'"),
    ("fit timed.csv --time 1-2", "--time must name one column"),
    ("fit x.npy --time 0 --trajectory 1", "--trajectory must name one column, and leave others"),
    ("fit x.npy wide.csv --trajectories", "must have the same columns; x.npy has '0', '1', and"),
    ("fit timed.csv --trajectories --trajectory t", "by a column, --trajectory, or by files"),
    ("fit x.npy --bursts none.npy", "--bursts must be a file; none.npy does not exist"),
    ("fit x.npy --bursts timed.csv", "--bursts must be an .npy or .npz file"),
    ("fit x.npy --pairs wide.csv", "--pairs must be a table with the columns of the input"),
    ("fit x.npy wide.csv --pairs x.npy", "--pairs goes with one input; got 2"),
    ("fit timed.csv --time t --pairs timed.csv", "in one way; got --time and --pairs"),
    ("fit x.npy --lag 2", "--lag is for --pairs"),
    ("fit x.npy --trajectories --method sum", "--method must be 'gradients' where --trajectories"),
    ("fit one.star --time t", "--time does not go with a file of particles"),
    ("fit all.star --time t --all-views", "--time does not go with particles of all views"),
]
PARTICLES = [
    ("fit empty", "or .mrc volumes; it holds none"),
    ("fit one.star --mask-radius 1", "`--mask-radius` must be a number in ["),
    ("fit one.star --low-pass 500", "`--low-pass` must lie between"),
    ("fit one.star --components 0", "`--components` must be a whole number in [1"),
    ("fit classes.star", "are of 2 classes of a 2-D classification: 1 (40 particles)"),
    ("fit classes.star --class 7", "--class must be one of 1 (40 particles), 2 (20)"),
    ("fit classes.star --optics-group 3", "--optics-group must be one of 1 (30 part"),
    ("fit classes.star --class 1 --datadir gone", "--datadir must be the folder"),
    ("fit stack.mrcs --view 0,0", "stack.mrcs. Give its STAR or .cs file"),
    ("fit all.star --all-views --symmetry X2", "Cn, Dn, T, O, or I1 to I4"),
    ("fit all.star --all-views --low-pass 1", "`--low-pass` must be a number in"),
    ("fit bare.star --all-views --dry-run", "need poses; bare.star has none"),
    ("fit one.star --all-views", "the angles of one.star are in-plane only"),
    ("fit all.star --symmetry C4", "--symmetry goes with --all-views"),
    ("fit all.star --cluster-of run", "goes with --all-views"),
    ("fit stack.mrcs --all-views", "needs one STAR or .cs file"),
    ("views bare.star", "viewing directions need poses; bare.star has none"),
    ("views one.star --width 0", "--width must be a number in [0.01, 90]; got 0.0"),
]
SIMULATED = [
    ("simulate tours", "must be one of"),
    ("simulate torus --n 0", "error: --n must be a whole number"),
    ("simulate torus --sampling dense", "--sampling must be one of"),
    ("simulate molecule --n 3", "or take --snr inf."),
    ("simulate molecule --structure a.pdb", "--structure and --rotor must be given"),
    ("simulate molecule --size 20", "stay inside"),
    ("simulate torus --snr 3", "--snr is an option for the molecule; got it with"),
    ("simulate molecule --noise 1", "--noise is an option for shapes; got it with"),
    ("simulate molecule --preferred", "--preferred is an option for --views all; got it"),
    ("simulate molecule --views all --in-plane", "--in-plane is an option for one view; got"),
]
RUNS = [
    ("report .", "is not a run folder"),
    ("explore nowhere", "nowhere does not exist"),
    ("select run --factor 1 --out a.star", "got 1 --factor and 0 --range"),
    ("select run --factor 3 --range 0 1 --out a.star", "1 to 2; got 3"),
    ("select run --factor {interval} --range .6 .2 --out a.csv", "[0, 1]; got 0.6 0.2"),
    ("select run --factor {circle} --range -400 10 --out a.csv", "in [-360, 360]; got -400 10"),
    ("select run --column factor1 low high --out a.csv", "needs a name and two numbers"),
    ("average run --factor 1 --bins 0", "--bins must be a whole number in [1"),
    ("average run --factor 1 --view 0,0", "within 10 degrees of rot 0, tilt 0"),
    ("export run --to cryodrgn --factor 1", "the coordinates that the program itself found"),
    ("export run --to cryosparc --factor 1", "particles are particles.star"),
    ("landscape run --factor 1 --factor 1", "one factor or two"),
    ("compare run", "compare needs two runs or more; got 1."),
    ("compare run run run --out x.csv", "needs two runs with --out; got 3."),
]
GROUPS = (PARSED, OUTPUTS, SAMPLES, MOVES, PARTICLES, SIMULATED, RUNS)


@pytest.mark.parametrize(("line", "message"), [pair for group in GROUPS for pair in group])
def test_bad_input_is_one_line_and_exit_code_2(inputs, numbers, monkeypatch, capsys, line, message):
    monkeypatch.chdir(inputs)
    said = refusal(line.format(**numbers), inputs, capsys)
    assert message in said
    assert (line, message) not in PARSED[:10] or said.endswith(" --help.\n")


@pytest.mark.parametrize(
    "line",
    [
        *("fit {}.star", "fit {}.cs", "views {}.star"),
        *("fit z.pkl --particles {}.star", "fit z.pkl --particles one.star --ind {}.pkl"),
    ],
)
def test_pipes_and_links_to_themselves_are_refused_and_not_waited_for(
    inputs, monkeypatch, capsys, line
):
    monkeypatch.chdir(inputs)
    assert "is a named pipe" in refusal(line.format("pipe"), inputs, capsys)
    assert "is a link that leads back to itself" in refusal(line.format("loop"), inputs, capsys)


def test_a_fit_too_large_for_memory_is_bad_input(inputs, monkeypatch, capsys):
    monkeypatch.chdir(inputs)
    monkeypatch.setattr("manifactor.operators.forecast.available_memory", lambda: 1e5)
    said = refusal("fit x.npy --dry-run", inputs, capsys)
    assert "the fit must fit into memory" in said
    said = refusal("fit all.star --all-views --dry-run", inputs, capsys)
    assert f"memory; {N} particles need about " in said


def test_stacks_without_images_are_refused(inputs, folder, capsys):
    shutil.copy(inputs / "all.star", folder)
    (folder / "stack.mrcs").write_bytes((inputs / "stack.mrcs").read_bytes()[:1024])
    os.truncate(folder / "stack.mrcs", (inputs / "stack.mrcs").stat().st_size)  # zeros
    assert "must differ from each other" in refusal("fit all.star --all-views", folder, capsys)
    assert manifactor("fit all.star --all-views --dry-run") == 0
