#!/usr/bin/env bash
# Build the student image and try it as Binder and students do. Closes on "N passed, N failed".
#
#   containers/smoke_image.sh [FOLDER]     FOLDER holds the Dockerfile; default: this repository
#
# Engine: a Docker daemon that answers, else podman (as root on Debian it is installed by apt). With
# podman the images live in a store of their own, SMOKE_STORE, which makes a second run fast:
#   default ~/.cache/attention-course-image, 2 GB. To be rid of it:
#   podman --root STORE/root --runroot STORE/run rmi --all --force; rm -rf STORE
#
# Where the base image cannot be pulled, standin_base.sh makes a local one and this machine's pip
# settings are mounted into the build. Everything but the official base image is then still tested.
#   SMOKE_BASE=pull      try the registry again although a stand-in exists
#   SMOKE_ENGINE=podman  do not ask for a Docker daemon
#   SMOKE_MEMORY=2g      the limit that the notebooks have to respect; Binder's is 2 GB
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "${1:-$here/..}" && pwd)
python=${PYTHON:-python3}
store=${SMOKE_STORE:-${XDG_CACHE_HOME:-$HOME/.cache}/attention-course-image}
limit=${SMOKE_MEMORY:-2g}
image=localhost/attention-course:smoke
container=attention-course-smoke-$$
forbidden=(solutions autograder tests)
work=$(mktemp -d)
engine=() build=() passed=0 failed=0

finish() {
  status=$?
  [ ${#engine[@]} -eq 0 ] || "${engine[@]}" rm --force "$container" >/dev/null 2>&1 || true
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT

title() { printf '\n== %s (after %s s)\n' "$*" "$SECONDS"; }
give_up() { echo "MISSING $*" >&2; exit 2; }
totals() { printf '\n%s passed, %s failed\n' "$passed" "$failed"; [ "$failed" = 0 ]; }
ok() { passed=$((passed + 1)); printf 'ok   %s\n' "$*"; }
bad() { failed=$((failed + 1)); printf 'FAIL %s\n' "$*"; }

# Run a command that prints ok/FAIL lines and count them. One that ends badly without a FAIL, or that
# says nothing at all, has failed too: silence proves nothing.
count() {
  local status=0 oks bads
  "$@" >"$work/lines" 2>"$work/errors" || status=$?
  cat "$work/lines"
  oks=$(grep -c '^ok ' "$work/lines" || true)
  bads=$(grep -c '^FAIL ' "$work/lines" || true)
  passed=$((passed + oks)) failed=$((failed + bads))
  if [ "$bads" = 0 ] && { [ "$status" != 0 ] || [ "$oks" = 0 ]; }; then
    bad "the checks did not run to their end: ${*: -3}"
    tail -n 15 "$work/errors"
    "${engine[@]}" logs --tail 10 "$container" 2>&1 || true
  fi
}

# ---------------------------------------------------------------------------------------- engine
title "engine"
debian_root() { [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ]; }
if [ "${SMOKE_ENGINE:-}" != podman ] && docker info >/dev/null 2>&1; then
  engine=(docker)
else
  missing=()
  for program in podman runc mmdebstrap; do
    command -v "$program" >/dev/null || missing+=("$program")
  done
  if [ ${#missing[@]} -gt 0 ] && debian_root; then
    echo "installing ${missing[*]}"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$work/apt" 2>&1 ||
      { tail -n 10 "$work/apt"; give_up "apt could not install ${missing[*]}"; }
  fi
  command -v podman >/dev/null || give_up "no container engine: no Docker daemon answers, podman" \
    "is not installed, and only root on Debian can install it here. Start Docker or install podman."
  if debian_root; then
    # Debian's crun does not start on mixed cgroups, and podman's default limits need a capability
    # that build machines often lack; hence runc, cgroupfs and modest limits.
    cat >"$work/containers.conf" <<'CONF'
[containers]
default_ulimits = ["nofile=1024:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
CONF
    export CONTAINERS_CONF=$work/containers.conf
    build+=(--ulimit nofile=1024:4096 --ulimit nproc=4096:4096)
  fi
  mkdir -p "$store"
  engine=(podman --root "$store/root" --runroot "$store/run")
  build+=(--network host)
fi
"${engine[@]}" --version

# ------------------------------------------------------------------------------------ base image
base=$(awk 'toupper($1) == "FROM" { print $2; exit }' "$root/Dockerfile")
if [ "${engine[0]}" = podman ]; then
  title "base image $base"
  standin=localhost/$base
  if [ "${SMOKE_BASE:-}" != pull ] && "${engine[@]}" image exists "$standin"; then
    echo "the local stand-in"
  elif timeout 300 "${engine[@]}" pull --quiet "$base" >"$work/pull" 2>&1; then
    echo "pulled"
    standin=
  else
    echo "cannot be pulled ($(tail -n 1 "$work/pull" | cut -c1-120)); making a local stand-in"
    PYTHON=$python "$here/standin_base.sh" "$base" "$work/base.tar" || give_up "a base image"
    "${engine[@]}" import --quiet --change 'CMD ["python3"]' --change 'ENV LANG=C.UTF-8' \
      --change 'ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin' \
      "$work/base.tar" "$standin" >/dev/null
    rm "$work/base.tar"
  fi
  if [ -n "$standin" ]; then
    # No registry, so probably no CPU wheel index either: torch comes from where pip finds it here.
    build+=(--pull=false --build-arg TORCH_INDEX_URL=)
    while read -r mount; do build+=(--volume "$mount"); done \
      < <("$python" "$here/pip_settings.py" "$work/pip.conf")
  fi
fi

# ----------------------------------------------------------------------------------------- build
title "build"
if ! "${engine[@]}" build "${build[@]}" --build-arg NB_USER=jovyan --build-arg NB_UID=1000 \
  --file "$root/Dockerfile" --tag "$image" "$root" >"$work/build" 2>&1; then
  grep -v 'is ignored' "$work/build" | tail -n 30
  bad "the image builds"
  totals
fi
ok "the image builds"
[ "${engine[0]}" = docker ] || "${engine[@]}" image prune --force >/dev/null
bytes=$("${engine[@]}" image inspect "$image" --format '{{.Size}}')
echo "     size $((bytes / 1000000)) MB"
entry=$("${engine[@]}" image inspect "$image" --format '{{.Config.Entrypoint}}')
case $entry in '[]' | '' | '<nil>') ok "no entry point" ;; *) bad "entry point $entry" ;; esac

# -------------------------------------------------------------------------------------- contents
title "contents"
probes=(--volume "$here:/probes:ro")
# Companion files of an assignment are the same in solutions/ and course/ on purpose; notebooks never.
for folder in "${forbidden[@]}"; do
  [ ! -d "$root/$folder" ] || (cd "$root" && find "$folder" -type f -size +0 \
    -not -path '*/__pycache__/*' -not -path '*.egg-info/*')
done | while read -r path; do
  twin=$root/course/${path#solutions/}
  [[ $path != *.ipynb && $path != *.py ]] && cmp -s "$root/$path" "$twin" && continue
  printf '%s:%s %s\n' "$(stat -c %s "$root/$path")" "$(sha256sum <"$root/$path" | cut -c1-64)" "$path"
done >"$work/forbidden"
count "${engine[@]}" run --rm --network none "${probes[@]}" "$image" python3 /probes/inside.py contents
count "${engine[@]}" run --rm --network none --user 0 "${probes[@]}" \
  --volume "$work/forbidden:/probes-forbidden:ro" "$image" \
  /opt/venv/bin/python3 /probes/inside.py leaks /probes-forbidden

# ------------------------------------------------------------------------------- as Binder starts it
title "as Binder starts it: $limit, 1 CPU, no network, no privileges"
inside() { count "${engine[@]}" exec "$container" python3 /probes/inside.py "$@"; }
path=/user/somebody/
"${engine[@]}" run --detach --name "$container" "${probes[@]}" --network none --cap-drop all \
  --security-opt no-new-privileges --memory "$limit" --memory-swap "$limit" --cpus 1 "$image" \
  python3 /probes/binder_start.py --ip=0.0.0.0 --port=8888 \
  --NotebookApp.base_url=$path --NotebookApp.token=secret \
  --ServerApp.base_url=$path --ServerApp.token=secret >/dev/null || bad "the container starts"
inside server "http://127.0.0.1:8888$path" secret

title "notebooks"
inside notebooks course
start=$SECONDS
"${engine[@]}" stop --time 20 "$container" >/dev/null || true
if [ $((SECONDS - start)) -lt 15 ]; then ok "stops when asked"; else bad "had to be killed"; fi
"${engine[@]}" rm --force "$container" >/dev/null

# ------------------------------------------------------------------------------ as students start it
title "as 'docker run' starts it"
"${engine[@]}" run --detach --name "$container" "${probes[@]}" --network none "$image" >/dev/null ||
  bad "the container starts"
inside up http://127.0.0.1:8888/
"${engine[@]}" logs "$container" >"$work/log" 2>&1 || true
if grep -qE '/lab\?token=[0-9a-f]{32}' "$work/log"; then ok "prints the address to open"; else
  bad "prints no address to open"
fi

title "done"
totals
