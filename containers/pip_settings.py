"""Carry this machine's pip settings into an image build, without writing them into the image.

Usage: pip_settings.py FILE. Writes the settings to FILE as a pip.conf and prints one
`outside:inside:ro` mount a line. Whatever lies on this machine's disk (wheel folders, certificates,
constraints) is mounted under its own path, so that the settings stay true inside. Prints nothing
where pip has no settings.
"""

import ast
import pathlib
import subprocess
import sys

WANTED = {
    "cert",
    "constraint",
    "default-timeout",
    "extra-index-url",
    "find-links",
    "index-url",
    "no-index",
    "timeout",
    "trusted-host",
}


def read_settings() -> dict[str, str]:
    """Return pip's own settings, those from environment variables last because they win."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True
    ).stdout
    settings = {}
    for line in sorted(listing.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        key = name.rpartition(".")[2]
        if key in WANTED:
            settings[key] = " ".join(ast.literal_eval(value).split())
    return settings


def local_paths(settings: dict[str, str]) -> set[pathlib.Path]:
    """Return the files and folders of this machine that the settings mention."""
    found = set()
    for value in settings.values():
        for word in value.split():
            path = pathlib.Path(word.removeprefix("file://"))
            if path.is_absolute() and path.exists():
                # the pages of an index link to files beside its `simple` folder
                found.add(path.parent if path.name == "simple" else path)
    return found


def main() -> None:
    """Write the pip.conf and print the mounts."""
    settings = read_settings()
    if not settings:
        return
    conf = pathlib.Path(sys.argv[1]).resolve()
    conf.write_text("[global]\n" + "".join(f"{key} = {settings[key]}\n" for key in settings))
    print(f"{conf}:/etc/pip.conf:ro")
    for path in sorted(local_paths(settings)):
        print(f"{path}:{path}:ro")


if __name__ == "__main__":
    main()
