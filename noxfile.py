"""What a newcomer runs and what continuous integration runs: the same sessions."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nox

ROOT = Path(__file__).parent
PACKAGES = (
    "packages/tile-core",
    "packages/tile-launch",
    "packages/tile-cpu",
    "packages/tile-cuda",
    "packages/tile-hip",
    "packages/tile-sim",
    "packages/tile-api",
    "packages/tile-nn",
)
ON_THE_CPU = (
    "packages/tile-core",
    "packages/tile-launch",
    "packages/tile-cpu",
    "packages/tile-api",
)
"""What the quickstart needs."""

DEV = ("-r", "requirements-dev.txt")
SITE = ("sphinx>=8.1", "myst-parser>=4", "furo", "sphinx-copybutton")
"""What the documentation's site is built with."""

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
ON_NUMPY_1 = ("3.10", "3.11", "3.12")
"""Those for which NumPy 1.26 has wheels."""

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["tests"]


def install(session: nox.Session, *requirements: str) -> None:
    """Install once: a session whose requirements have not changed starts at once."""
    described_by = (ROOT / "requirements-dev.txt", *sorted(ROOT.glob("packages/*/pyproject.toml")))
    digest = hashlib.sha256(repr(requirements).encode())
    for path in described_by:
        digest.update(path.read_bytes())
    stamp = Path(session.virtualenv.location) / "installed"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    session.install("--quiet", *requirements)
    stamp.write_text(digest.hexdigest())


def editable(*paths: str) -> list[str]:
    """Return pip's arguments that install `paths` in place."""
    return [argument for path in paths for argument in ("--editable", path)]


PARALLEL = ("-n", "auto", "--dist", "worksteal")
"""All cores, each with its own half of the files: what a module prepares is prepared once."""


def run_pytest(session: nox.Session, *arguments: str, **variables: str) -> None:
    """Run tests with bytecode kept, wherever Python is told to keep none.

    Workers and the interpreters that tests start would compile every module each time: a third
    of what collecting costs, and most of the time of a test of the command line.
    """
    session.run("pytest", *arguments, env={"PYTHONDONTWRITEBYTECODE": "", **variables})


def run_lint(session: nox.Session) -> None:
    """Check formatting and style."""
    session.run("ruff", "format", "--check", "--quiet", ".")
    session.run("ruff", "check", "--quiet", ".")


ON_THREE = ("--each", "3")
"""Random programs run on three targets each, drawn."""


def run_fuzz(session: nox.Session, *options: str) -> None:
    """Compare random programs with what they mean."""
    session.run("python", "-m", "fuzz", *options, env={"PYTHONPATH": "tests"})


def seeds_of_tree(count: int) -> list[int]:
    """Return seeds that the committed files decide: other programs with each commit.

    What continuous integration finds is found by the same command on the same commit, and the
    other way round.
    """
    asked = ("git", "rev-parse", "HEAD^{tree}")
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    tree = found.stdout.strip() or "0"
    return [int(tree[:6], 16) * count + each for each in range(count)]


def run_changed(session: nox.Session, base: str = "main") -> None:
    """Run the test files that what differs from `base` can break."""
    told = session.run(
        "python", "-m", "tools.changed", base, env={"PYTHONPATH": "tests"}, silent=True
    )
    files = str(told).split()
    session.log(f"{len(files)} test files can break" if files else "no test can break")
    if files:
        run_pytest(session, *PARALLEL, *files)


def remember_time(name: str, start: float) -> None:
    """Write down how long a session took, for `figures`."""
    path = ROOT / ".nox" / "times.json"
    times = json.loads(path.read_text()) if path.exists() else {}
    times[name] = round(time.monotonic() - start)
    path.write_text(json.dumps(times))


@nox.session
def quickstart(session: nox.Session) -> None:
    """Compile a GEMM and flash attention for this CPU, check them, print how fast they are."""
    install(session, *editable(*ON_THE_CPU))
    session.run("python", "examples/quickstart.py", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run every check of the project: style, types, all tests on all cores, random programs.

    Random programs have a seed for each commit, printed: ``nox -s fuzz -- --seed N`` repeats them.
    With arguments, run only pytest with them: ``nox -s tests -- tests/unit -x``.
    ``--changed``, or ``--changed BASE``: run what differences from main, or BASE, can break.
    """
    install(session, *DEV)
    if session.posargs[:1] == ["--changed"]:
        run_changed(session, *session.posargs[1:2])
        return
    start = time.monotonic()
    if session.posargs:
        run_pytest(session, *session.posargs)
        return
    run_lint(session)
    with ThreadPoolExecutor() as beside:  # mypy and the fuzzer have one process each
        types = beside.submit(session.run, "mypy", silent=True)
        run_pytest(session, *PARALLEL)
        types.result()
        for each in [
            beside.submit(run_fuzz, session, *ON_THREE, "--seconds", "15", "--seed", f"{seed}")
            for seed in seeds_of_tree(2)
        ]:
            each.result()
    remember_time("tests", start)


@nox.session
def smoke(session: nox.Session) -> None:
    """Run a sample of all tests, which takes two minutes: see tests/support/smoke.py."""
    install(session, *DEV)
    start = time.monotonic()
    run_pytest(session, *PARALLEL, "-m", "smoke", *session.posargs)
    remember_time("smoke", start)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Compare random programs on all targets with what they mean, for a minute.

    ``nox -s fuzz -- --seed 7 --seconds 3600 --targets cpus --log fuzz.jsonl``; see tests/fuzz.
    """
    install(session, *DEV)
    run_fuzz(session, *(session.posargs or (*ON_THREE, "--seconds", "60")))


@nox.session
def mutants(session: nox.Session) -> None:
    """Change the packages in 60 places, run on each the tests that come by, print what survives.

    ``nox -s mutants -- --all --seed 4``; without arguments in files that differ from main. What was
    stopped goes on where it was.
    """
    install(session, *DEV)
    session.run("python", "-m", "tools.mutants", *session.posargs, env={"PYTHONPATH": "tests"})


@nox.session
def figures(session: nox.Session) -> None:
    """Print what is watched about the code: sizes, calls and walks of lowering, circles, times."""
    install(session, *DEV)
    session.run("python", "-m", "tools.figures", env={"PYTHONPATH": "tests"})


@nox.session
def lint(session: nox.Session) -> None:
    """Check formatting and style; ``nox -s lint -- --fix`` mends what can be mended."""
    install(session, "ruff==0.17.*")
    if "--fix" in session.posargs:
        session.run("ruff", "check", "--fix", ".")
        session.run("ruff", "format", ".")
        return
    run_lint(session)


@nox.session
def types(session: nox.Session) -> None:
    """Check types, strictly."""
    install(session, *editable(*PACKAGES, "tests/plugins/tile-toy"), "mypy==2.4.*")
    session.run("mypy", *session.posargs)


@nox.session
def imports(session: nox.Session) -> None:
    """Check that packages and layers import in one direction only."""
    install(session, *editable(*PACKAGES), "import-linter>=2.4")
    session.run("lint-imports", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site, ``docs/_build/html/index.html``; a warning or a dead link is an error."""
    install(session, *editable(*ON_THE_CPU), *SITE)
    source, out = "docs/_build/source", "docs/_build/html"
    session.run("python", "docs/site/assemble.py", source)
    session.run("sphinx-build", "-W", "-q", "-j", "auto", "-b", "html", source, out)
    session.run("python", "docs/site/searched.py", out)
    session.log(f"the site: {(ROOT / out / 'index.html').as_uri()}")


@nox.session
def conformance(session: nox.Session) -> None:
    """Run the contract and the examples on every target; write the table of the docs."""
    install(session, *DEV)
    run_pytest(
        session,
        *PARALLEL,
        *("-p", "support.conformance_table"),
        *("-k", "not toy and (contract or on_the_cpu or in_the_interpreter or in_the_emulator)"),
        "tests/conformance/test_conformance.py",
        "tests/examples",
        *session.posargs,
        PYTHONPATH="tests",
    )


@nox.session
def machines(session: nox.Session) -> None:
    """Run what depends on the processor as lesser ones do: AVX2 only; AVX-512 without dots."""
    install(session, *DEV)
    for machine in ("znver3", "znver4,avx512vnni,avx512bf16"):
        run_pytest(
            session,
            *PARALLEL,
            *("tests/unit/tile_cpu", "tests/language", "-k", "tile_cpu or cpu"),
            *session.posargs,
            TILE_TEST_MACHINE=machine,
        )


def python_of(version: str) -> str | None:
    """Return a Python of a version that runs: on the path, or one that pyenv holds."""
    held = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for candidate in (shutil.which(f"python{version}"), *map(str, held)):
        if candidate and not subprocess.run([candidate, "-c", ""], capture_output=True).returncode:
            return candidate
    return None


@nox.session
def wheels(session: nox.Session) -> None:
    """Build all packages, and run first results from wheels alone, on each Python that is here.

    Wheels are built from source distributions, so that these are complete, into ``dist``.
    """
    session.install("--quiet", "build", "hatchling>=1.26", "twine")
    folder = ROOT / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    for path in PACKAGES:
        session.run(
            "python", "-m", "build", "--no-isolation", "--outdir", str(folder), path, silent=True
        )
    session.run("twine", "check", "--strict", *map(str, sorted(folder.iterdir())))
    found = 0
    for version in PYTHONS:
        python = python_of(version)
        if python is None:
            session.log(f"no python{version} here")
            continue
        for numpy in ("numpy<2", "numpy>=2") if version in ON_NUMPY_1 else ("numpy>=2",):
            found += 1
            home = Path(session.create_tmp()).resolve() / f"{version}-{found}"
            session.run(python, "-m", "venv", "--clear", str(home), external=True)
            mine = str(home / "bin" / "python")
            wanted = ("tile-api[sim]", "tile-cuda", "tile-nn", numpy, "--find-links", str(folder))
            session.run(mine, "-m", "pip", "install", "--quiet", *wanted, external=True)
            check = str(ROOT / "tests" / "wheels" / "first_results.py")
            own = {"TILE_CACHE_DIR": str(home / "cache"), "PYTHONPATH": ""}
            with session.chdir(home):  # nothing of the repository is seen
                session.run(mine, check, "cuda:sm_80@sim", external=True, env=own)
    if not found:
        session.error(f"none of python{', python'.join(PYTHONS)} is here")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure against NumPy and torch at equal thread counts and print the tables."""
    install(session, *DEV)
    session.run("python", "benchmarks/run.py", *session.posargs)


@nox.session(name="bench-gpu")
def bench_gpu(session: nox.Session) -> None:
    """Compile the kernels of the GPU benchmarks, then check and measure them on the GPU here.

    ``nox -s bench-gpu -- M0 FA`` takes problems whose names begin so.
    """
    install(session, *DEV)
    folder = session.create_tmp()
    only = ("--only", *session.posargs) if session.posargs else ()
    session.run("python", "benchmarks/gpu/build.py", folder, *only)
    session.run("python", "benchmarks/gpu/run.py", folder, "--out", f"{folder}/results.json", *only)
