#!/bin/sh
# Rebuilds d3_subset.min.js and NOTICE.d3 from npm (needs node, npm and the npm registry).
#
# bertviz 1.4.1 is written for d3 version 5 and calls only what is exported below, so the
# course carries these parts and not the whole library.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > subset.js <<'JS'
export { hsl } from "d3-color";
export { scaleOrdinal } from "d3-scale";
export { schemeCategory10 } from "d3-scale-chromatic";
export { select, selectAll } from "d3-selection";
export { line } from "d3-shape";
export const version = "5.16.0";
JS
echo '{"private": true}' > package.json
npm install --no-audit --no-fund --silent d3@5.16.0 esbuild@0.25.12
npx esbuild subset.js --bundle --minify --format=iife --global-name=d3 --legal-comments=none \
    --banner:js='/* A subset of d3 5.16.0 (https://d3js.org). Copyright 2010-2020 Mike Bostock. BSD-3-Clause, see NOTICE.d3. */' \
    --outfile="$here/d3_subset.min.js"
cp node_modules/d3/LICENSE "$here/NOTICE.d3"
wc -c "$here/d3_subset.min.js"
