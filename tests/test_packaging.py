"""The rules that Dockerfile, .dockerignore, environment.yml and the lists of versions obey.

Fast and without containers; `make image` builds the image and tries it.
"""

import importlib.metadata
import importlib.util
import pathlib
import pkgutil
import re
import shlex
import subprocess
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALLOWED = {
    "requirements.txt",
    "requirements-models.txt",
    "constraints.txt",
    "pyproject.toml",
    "README.md",
    "attention_course",
    "course",
}
# found without importing it, which takes seconds
NBGRADER = pathlib.Path(importlib.util.find_spec("nbgrader").origin).parent
STUDENTS_PART_OF_NBGRADER = {"validate_assignment"}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def dockerfile():
    """The instructions, as (NAME, rest) with continued lines joined."""
    lines = [line for line in read("Dockerfile").splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [tuple(line.split(None, 1)) for line in joined.splitlines() if line.strip()]


def values(name):
    return [rest for instruction, rest in dockerfile() if instruction.upper() == name]


def arguments():
    return dict(rest.partition("=")[::2] for rest in values("ARG"))


# ------------------------------------------------------------------------------------ Dockerfile


def test_base_image_is_explicit_and_has_the_python_of_environment_yml():
    (base,) = values("FROM")
    image, _, tag = base.partition(":")
    assert image == "python" and re.fullmatch(r"3\.11\.\d+-slim-bookworm", tag), base
    environment = yaml.safe_load(read("environment.yml"))
    python = next(d for d in environment["dependencies"] if str(d).startswith("python="))
    minor = python.removeprefix("python=")
    assert tag.startswith(f"{minor}.")
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert tag.split("-")[0] in SpecifierSet(project["requires-python"])


def test_torch_comes_from_a_cpu_index_unless_told_otherwise():
    default = arguments()["TORCH_INDEX_URL"]
    assert re.fullmatch(r"https://\S+/cpu", default), "Binder would get 2.7 GB of CUDA"
    pip = next(run for run in values("RUN") if "requirements.txt" in run)
    assert "${TORCH_INDEX_URL:+--extra-index-url" in pip
    assert "-c /tmp/build/constraints.txt" in pip


def test_binder_decides_what_runs():
    assert not values("ENTRYPOINT"), "Binder passes its own command"
    assert values("CMD") and values("CMD")[-1].startswith("["), "exec form, so that signals arrive"
    assert not (ROOT / "binder").exists() and not (ROOT / ".binder").exists(), (
        "such a folder would hide the Dockerfile from Binder"
    )


def test_the_user_is_a_plain_one():
    assert arguments()["NB_UID"] == "1000"
    assert values("USER")[-1] == "${NB_UID}"


def test_the_environment_comes_first_on_path_and_uses_one_thread():
    environment = dict(pair.partition("=")[::2] for pair in shlex.split(" ".join(values("ENV"))))
    assert environment["PATH"].startswith("/opt/venv/bin:")
    assert environment["OMP_NUM_THREADS"] == "1"


def test_jupyter_is_configured_inside_the_environment():
    assert not any("/etc/jupyter" in run for run in values("RUN")), "Binder mounts its own there"
    switches = [run for run in values("RUN") if "extension disable" in run]
    assert switches
    for run in switches:
        for command in run.split("&&"):
            if "extension disable" in command:
                assert "--sys-prefix" in command or "--level=sys_prefix" in command


def test_what_changes_often_comes_last():
    sources = [" ".join(rest.split()[:-1]) for rest in values("COPY")]
    order = [
        next(number for number, source in enumerate(sources) if name in source.split())
        for name in ("requirements.txt", "attention_course", "course")
    ]
    assert order == sorted(set(order)), sources


def test_only_allowed_things_are_copied():
    for rest in values("COPY"):
        *sources, _ = [word for word in rest.split() if not word.startswith("--")]
        assert set(sources) <= ALLOWED
    assert not values("ADD")


# --------------------------------------------------------------------------------- .dockerignore


def pattern_to_regex(pattern):
    """A pattern of .dockerignore as a regular expression, by the rules of Docker's reference."""
    regex = ""
    for part in re.findall(r"\*\*/?|\*|\?|\[[^]]*\]|.", pattern):
        if part.startswith("**"):
            regex += "(?:.*/)?" if part == "**/" else ".*"
        elif part in "*?":
            regex += "[^/]*" if part == "*" else "[^/]"
        else:
            regex += part if part.startswith("[") else re.escape(part)
    return re.compile(regex)


def reaches_build(path, rules):
    """The last rule that matches the path or a folder above it decides."""
    parts = path.split("/")
    prefixes = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    ignored = False
    for rule in rules:
        pattern = pattern_to_regex(rule.removeprefix("!").strip("/"))
        if any(pattern.fullmatch(prefix) for prefix in prefixes):
            ignored = not rule.startswith("!")
    return not ignored


@pytest.fixture(scope="module")
def rules():
    lines = (line.strip() for line in read(".dockerignore").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def test_dockerignore_starts_from_nothing(rules):
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == ALLOWED


def test_dockerignore_evaluation_knows_dockers_rules():
    assert reaches_build("a/b.txt", [])
    assert not reaches_build("a/b.txt", ["*"]), "a folder takes what is in it along"
    assert reaches_build("a/b.txt", ["*", "!a"])
    assert not reaches_build("a/c/b.txt", ["*", "!a", "**/c"])
    assert not reaches_build("c", ["**/c"])
    assert not reaches_build("a/b.pyc", ["**/*.pyc"])
    assert not reaches_build("a/b.txt", ["!a", "*"]), "the last rule wins"
    assert reaches_build("a/b.txt", ["*.txt"]), "* stops at a slash"


@pytest.mark.parametrize(
    "path",
    [
        "solutions/01_shapes.py",
        "solutions/01_shapes/01_shapes.ipynb",
        "autograder/exercises/ch01_shapes.py",
        "tests/test_packaging.py",
        "benchmarks/anything.py",
        "docs/instructors.md",
        "a_folder_made_tomorrow/course/01_shapes.ipynb",
        ".git/config",
        ".venv/bin/python",
        ".autograder-secret",
        "gradebook.db",
        "submitted/someone/01_shapes/01_shapes.ipynb",
        "nbgrader_config.py",
        "requirements-dev.txt",
        "courses",
        "course/01_shapes/.ipynb_checkpoints/01_shapes-checkpoint.ipynb",
        "attention_course/__pycache__/codec.cpython-311.pyc",
        "attention_course.egg-info/SOURCES.txt",
    ],
)
def test_dockerignore_keeps_out(path, rules):
    assert not reaches_build(path, rules)


@pytest.mark.parametrize(
    "path",
    [
        "requirements.txt",
        "README.md",
        "attention_course/explorers/widget.js",
        "attention_course/jupyterlab/overrides.json",
        "course/01_shapes/01_shapes.ipynb",
        "course/01_shapes/checks.json",
    ],
)
def test_dockerignore_lets_in(path, rules):
    assert reaches_build(path, rules)


def test_no_tracked_file_reaches_the_build_that_should_not(rules):
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("needs git and a checkout to know which files belong to the project")
    reaching = {path for path in listing.stdout.splitlines() if reaches_build(path, rules)}
    assert {path.split("/")[0] for path in reaching} <= ALLOWED
    assert "requirements.txt" in reaching


# ------------------------------------------------------------------------------ students' nbgrader


def switched_off(command):
    """The names that the Dockerfile hands to `jupyter ... disable`."""
    names = []
    for run in values("RUN"):
        for part in run.split("&&"):
            words = part.split()
            if words[: len(command)] == command:
                names += [word for word in words[len(command) :] if not word.startswith("-")]
    return names


def test_students_keep_only_validate_in_the_page():
    static = NBGRADER / "labextension" / "static"
    code = "".join(path.read_text(encoding="utf-8") for path in static.glob("*.js"))
    shipped = set(re.findall(r'"@jupyter/nbgrader:([a-z-]+)"', code))
    assert len(shipped) > 1, "nbgrader's page code has changed its shape"
    names = switched_off(["jupyter", "labextension", "disable"])
    off = {name.partition(":")[2] for name in names if name.startswith("@jupyter/nbgrader:")}
    assert shipped - off == {name.replace("_", "-") for name in STUDENTS_PART_OF_NBGRADER}
    assert off < shipped, "a name that nbgrader does not have switches nothing off"


def test_students_keep_only_validate_in_the_server():
    folder = NBGRADER / "server_extensions"
    shipped = {module.name for module in pkgutil.iter_modules([str(folder)])}
    names = switched_off(["jupyter", "server", "extension", "disable"])
    off = {name.removeprefix("nbgrader.server_extensions.") for name in names}
    assert shipped - off == STUDENTS_PART_OF_NBGRADER
    assert off < shipped


# ---------------------------------------------------------------------------------------- versions


def pins(name):
    """{package: version} of a file of requirements; every line has to be an exact version."""
    found = {}
    for line in read(name).splitlines():
        line = line.partition("#")[0].strip()
        if line and not line.startswith("-"):
            match = re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.]+)", line)
            assert match, f"{name}: {line!r} is not an exact version"
            package = canonicalize_name(match[1])
            assert package not in found, f"{name}: {package} stands there twice"
            found[package] = match[2]
    assert found
    return found


@pytest.mark.parametrize(
    "name", ["requirements.txt", "requirements-dev.txt", "requirements-models.txt"]
)
def test_requirements_are_exact_explained_and_the_same_everywhere(name):
    constraints = pins("constraints.txt")
    for package, version in pins(name).items():
        assert constraints.get(package) == version, f"constraints.txt disagrees on {package}"
    for line in read(name).splitlines():
        if "==" in line:
            assert len(line.partition("#")[2].strip()) > 5, f"{name}: why {line!r}?"


def test_no_list_of_versions_names_an_index():
    """An index belongs in the Dockerfile's argument: from a list it would reach everybody."""
    for name in ("requirements.txt", "requirements-dev.txt", "constraints.txt", "environment.yml"):
        assert not re.search(r"https?://|--(extra-)?index-url|--find-links", read(name)), name


PLATFORMS = [
    {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"},
    {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix"},
    {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt"},
]


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform["platform_system"])
def test_constraints_cover_what_each_platform_installs(platform):
    """Follow what the installed packages say they need there, as far as they are installed here."""
    constraints = pins("constraints.txt")
    todo = [
        Requirement(name) for name in [*pins("requirements.txt"), *pins("requirements-dev.txt")]
    ]
    seen, missing = set(), set()
    while todo:
        wanted = todo.pop()
        key = (canonicalize_name(wanted.name), frozenset(wanted.extras))
        if key in seen:
            continue
        seen.add(key)
        if key[0] not in constraints:
            missing.add(key[0])
        try:
            needs = importlib.metadata.requires(wanted.name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # of another platform; its name is checked, its own needs cannot be seen here
        for need in map(Requirement, needs):
            extras = wanted.extras or {""}
            if not need.marker or any(
                need.marker.evaluate({**platform, "extra": extra}) for extra in extras
            ):
                todo.append(need)
    # what a CUDA build of torch brings follows torch's own exact versions
    missing = {name for name in missing if not re.match("nvidia-|cuda-|triton", name)}
    assert not missing, f"constraints.txt has no version for {sorted(missing)}"


# ------------------------------------------------------------------------------------------- conda


def test_environment_yml_takes_everything_but_python_from_pips_lists():
    environment = yaml.safe_load(read("environment.yml"))
    assert set(environment) == {"name", "channels", "dependencies"}
    *conda, pip = environment["dependencies"]
    assert [re.split("[=<> ]", spec)[0] for spec in conda] == ["python", "pip"]
    assert not any(spec.count("=") > 1 for spec in conda), "build strings tie it to one platform"
    assert pip == {"pip": ["-r requirements.txt", "-c constraints.txt", "-e ."]}
    for entry in pip["pip"]:
        assert (ROOT / entry.split()[1]).exists()
