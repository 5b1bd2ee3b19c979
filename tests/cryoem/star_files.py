"""Small STAR files in the forms of RELION 3.0, 3.1 and 5, with the trailing spaces and widths that RELION writes."""


def row(*values: str) -> str:
    """Values right-aligned in columns of 12, each with a space behind, as RELION writes them."""
    return "".join(f"{value:>12} " for value in " ".join(values).split()) + "\n"


def loop(name: str, labels: str, rows: list[str]) -> str:
    """A block with a table."""
    header = "".join(f"_{label} #{i} \n" for i, label in enumerate(labels.split(), start=1))
    return f"data_{name}\n\nloop_ \n{header}" + "".join(rows) + "\n"


def file(version: int, optics: tuple[str, list[str]], particles: tuple[str, list[str]]) -> str:
    """A file with labels and rows of optics groups and of particles."""
    blocks = {"optics": optics, "particles": particles}
    return "".join(
        f"\n# version {version}\n\n" + loop(name, *each) for name, each in blocks.items()
    )


RELION_30 = "\n" + loop(
    "",
    "rlnCoordinateX rlnImageName rlnMicrographName rlnVoltage rlnSphericalAberration rlnAmplitudeContrast "
    "rlnDefocusU rlnDefocusV rlnDefocusAngle rlnDetectorPixelSize rlnMagnification rlnAngleRot rlnAngleTilt "
    "rlnAnglePsi rlnOriginX rlnOriginY rlnRandomSubset",
    [
        row(
            f"1021.000000 {number}@Extract/job007/mic_{mic}.mrcs mic_{mic}.mrc 300.000000 2.700000",
            f"0.100000 {u} 14810.5 35.870000 5.000000 37037.037037 {pose} {half}",
        )
        for number, mic, u, pose, half in [
            ("000001", "a", "15120.300781", "-17.95410 90.000000 12.500000 2.000000 -1.000000", 1),
            ("000002", "a", "15120.300781", "171.00000 12.250000 -170.1 0.500000 3.250000", 2),
            ("000003", "a", "15120.3", "0.000000 0.000000 0.000000 -4.000000 0.000000", 1),
            ("000012", "b", "2.101e+04", "95.25 178.500000 1e-3 1.000000 1.000000", 2),
            ("000001", "b", "21010.000000", "-95.250000 45.000000 60 0.000000 -2.5", 2),
            ("000002", "b", "21010.00", "30.000000 60.000000 90.000000 0 0", 1),
        ]
    ],
)

RELION_31 = file(
    30001,
    (
        "rlnOpticsGroupName rlnOpticsGroup rlnVoltage rlnSphericalAberration rlnAmplitudeContrast rlnImagePixelSize "
        "rlnImageSize rlnImageDimensionality",
        [
            row("opticsGroup7 7 300.000000 2.700000 0.100000 1.244531 256 2"),
            row("opticsGroup2 2 200.000000 0.010000 0.070000 1.244531 256 2"),
        ],
    ),
    (
        "rlnImageName rlnOpticsGroup rlnDefocusU rlnDefocusV rlnDefocusAngle rlnPhaseShift rlnAngleRot rlnAngleTilt "
        "rlnAnglePsi rlnOriginXAngst rlnOriginYAngst rlnRandomSubset",
        [
            row("3@Extract/job012/m1.mrcs 7 9873.2 9771.12 -22.4 0.0 10 20 30 1.5 -2 1"),
            row("1@Extract/job012/m1.mrcs 7 9873.2 9771.12 -22.4 0.0 11 21 31 0 0 2"),
            row("2@Extract/job012/m1.mrcs 7 9873.2 9771.12 -22.4 0.0 12 22 32 0.25 4 1"),
            row("1@Extract/job012/m2.mrcs 2 8000 7900 80.25 90.0 -179.9 23 33 7 1 2"),
            row("2@Extract/job012/m2.mrcs 2 8000 7900 80.25 90.0 -9 150 34 0.1 0 2"),
            row("3@Extract/job012/m2.mrcs 2 8000 7900 80.25 90.0 45 90 35 -3 2.75 1"),
        ],
    ),
)

RELION_5 = file(
    50001,
    (
        "rlnOpticsGroup rlnOpticsGroupName rlnAmplitudeContrast rlnSphericalAberration rlnVoltage rlnImagePixelSize",
        [row("1 opticsGroup1 0.100000 1.400000 300.000000 0.885000")],
    ),
    (
        "rlnCoordinateX rlnAutopickFigureOfMerit rlnImageName rlnOpticsGroup rlnDefocusU rlnDefocusV rlnDefocusAngle "
        "rlnAngleRot rlnAngleTilt rlnAnglePsi rlnOriginXAngst rlnOriginYAngst rlnRandomSubset rlnGroupName",
        [
            row(
                f"1862.0 -999.00000 {i:06d}@Extract/job032/Movies/m.mrcs 1 10863.857422 10575.72",
                f"77.967194 {rot} 81.25 -12.5 {x} 0.177 1 group_01",
            )
            for i, rot, x in zip(
                range(1, 7),
                ["-160.25971", "-160.2", "1.6e+02", "0", "90.0000000", "179.99"],
                ["-2.12499", "1.115", "0.00", "-0.885", "1", "12.3456789"],
                strict=True,
            )
        ],
    ),
)

GENERAL = "data_general\n\n_rlnTomoSubTomosAre2DStacks                       1 \n \n"
RELION_5_TOMO = f"\n# version 50001\n\n{GENERAL}" + file(
    50001,
    (
        "rlnOpticsGroup rlnOpticsGroupName rlnVoltage rlnSphericalAberration rlnAmplitudeContrast rlnImagePixelSize",
        [row("1 opticsGroup1 300.000000 2.700000 0.070000 5.400000")],
    ),
    (
        "rlnTomoName rlnTomoParticleName rlnCenteredCoordinateXAngst rlnOpticsGroup rlnImageName rlnAngleRot "
        "rlnAngleTilt rlnAnglePsi rlnOriginXAngst rlnOriginYAngst rlnOriginZAngst",
        [
            row(
                f"TS_01 TS_01/{i} {x} 1 Extract/job009/Subtomograms/TS_01/{i}_stack2d.mrcs",
                "15.5 85.000000 -3 0.540000 -1.080000 2.0",
            )
            for i, x in enumerate(
                ["-1042.2", "330", "0.000000", "17.25", "1.5e+03", "-0.1"], start=1
            )
        ],
    ),
)

FLAVOURS = {"3.0": RELION_30, "3.1": RELION_31, "5": RELION_5, "5 tomo": RELION_5_TOMO}
