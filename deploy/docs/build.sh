#!/usr/bin/env bash
# Builds the documentation site into build/site. Creates .venv-docs with the packages of requirements.txt; skips steps that
# are already done. Nothing is compiled.
set -euo pipefail
root=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
cd "$root"

deploy/install_packages.sh deploy/packages_docs.txt
. deploy/common.sh
install_requirements .venv-docs deploy/docs/requirements.txt --no-deps

# Not with --quiet: it hides warnings from --strict. The variable turns off an advertisement of the theme.
log=build/docs.log
mkdir -p build
if ! NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs build --strict --clean --config-file deploy/docs/mkdocs.yml >"$log" 2>&1; then
  grep -v '^INFO' "$log" >&2
  exit 1
fi
if external=$(grep -rlE '<(script|link|img|iframe)[^>]+(src|href)="?https?://' build/site --include='*.html'); then
  echo "docs: expected no scripts, styles, fonts and pictures of other hosts, found some in" $external >&2
  exit 1
fi
echo "docs: $(find build/site -name '*.html' | wc -l) pages; open file://$root/build/site/index.html"
