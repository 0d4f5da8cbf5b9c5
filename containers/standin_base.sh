#!/usr/bin/env bash
# Make a stand-in for an official Python image, for machines that no image registry will answer:
#
#   standin_base.sh python:3.11.16-slim-bookworm FILE.tar
#
# It is Debian's minimal system from apt with this machine's own CPython of the same minor version in
# /usr/local, which is where the official images keep theirs. It proves the Dockerfile and not the
# official image. Needs root and mmdebstrap.
set -euo pipefail

base=$1 tar=$2
python=${PYTHON:-python3}
minor=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
prefix=$("$python" -c 'import sys; print(sys.base_prefix)')

complain() { echo "cannot make a stand-in for $base: $*" >&2; exit 1; }
[[ $base == python:"$minor"[.-]*bookworm ]] ||
  complain "this machine has Python $minor for Debian bookworm (set PYTHON to choose another)"
[ "$prefix" != /usr ] ||
  complain "Debian's own Python 3.11.2 is older than the pinned packages allow"
command -v mmdebstrap >/dev/null || complain "mmdebstrap is missing"
[ "$(id -u)" = 0 ] || complain "this needs root"

# Debian's libraries that CPython's standard modules link to, and what every slim image has.
packages=ca-certificates,netbase,tzdata,libbz2-1.0,libexpat1,libffi8,liblzma5,libncursesw6
packages+=,libreadline8,libsqlite3-0,libssl3,libuuid1,zlib1g
sources=()
[ ! -e /etc/apt/sources.list.d/debian.sources ] || sources=(/etc/apt/sources.list.d/debian.sources)
export prefix minor

# shellcheck disable=SC2016  # the hooks expand $1, the new system's root, later
mmdebstrap --quiet --variant=minbase --include="$packages" \
  --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='cd "$prefix" && tar -c \
      --exclude=__pycache__ --exclude="*.a" --exclude="lib/python$minor/site-packages/*" \
      --exclude="lib/python$minor/test" --exclude="lib/python$minor/config-*" \
      "bin/python$minor" "lib/python$minor" $(ls -d lib/libpython*.so* 2>/dev/null) |
    tar -x --no-same-owner -C "$1/usr/local"' \
  --customize-hook='cd "$1/usr/local/bin" && ln -s "python$minor" python3 && ln -s python3 python' \
  --customize-hook='chroot "$1" ldconfig' \
  bookworm "$tar" "${sources[@]}"
