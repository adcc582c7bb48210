#!/usr/bin/env bash
# Everything that is given away, into dist/: wheel, source archive, Debian package, a software bill of materials
# (CycloneDX) of the program with its laptop engine, and SHA256SUMS over them.
#   packaging/release.sh PYTHON
set -euo pipefail

python=$(realpath -s "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=build/packaging
tools=$work/tools
mkdir -p "$work"
version=$(sed -nE 's/^__version__ = "(.*)"$/\1/p' engine/__init__.py)
grep -q "^## \[$version\] - " CHANGELOG.md || { echo "CHANGELOG.md has no section for $version: write it first." >&2; exit 2; }

if [[ ! -x $tools/bin/cyclonedx-py || pyproject.toml -nt $tools/.ready ]]; then
    echo "surtitle: installing the tools of a release"
    "$python" -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet --upgrade pip
    "$tools/bin/python" -m pip install --quiet --group release
    touch "$tools/.ready"
fi
rm -rf dist
echo "surtitle: building wheel and source archive"
"$tools/bin/python" -m build --outdir dist . >"$work/build.log" 2>&1 || { tail -n 20 "$work/build.log" >&2; exit 1; }
"$python" packaging/deb/build.py --work "$work" --output dist >/dev/null

# What the package was resolved to, installed: its list is the bill of materials, and the packages are tried on it.
echo "surtitle: installing wheel and laptop engine into a fresh environment"
rm -rf "$work/env"
"$python" -m venv "$work/env"
"$work/env/bin/python" -m pip install --quiet --no-index --find-links "$work/wheels" --find-links "$work/llama" \
    "dist/surtitle-$version-py3-none-any.whl[laptop]"
"$tools/bin/cyclonedx-py" environment --pyproject pyproject.toml --output-reproducible \
    --output-file "dist/surtitle-$version.cdx.json" "$work/env/bin/python"
(cd dist && sha256sum -- * >SHA256SUMS)
ls -l dist | tail -n +2 | awk '{ printf "  %6.1f MB  %s\n", $5 / 1e6, $9 }'
