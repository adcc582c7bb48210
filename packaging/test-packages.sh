#!/usr/bin/env bash
# After `make release`: each artefact installed in a clean place and used. As root, on Debian; minutes.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(realpath build/packaging)
version=$(sed -nE 's/^__version__ = "(.*)"$/\1/p' engine/__init__.py)
wheel=$(realpath "dist/surtitle-$version-py3-none-any.whl")
recording=$(realpath resources/recordings/two-voices.flac)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
said=$SECONDS
step() { echo "== $1"; said=$SECONDS; }
fail() { echo "FAILED: $1" >&2; exit 1; }
# The program outside the checkout, with user folders of its own, through the bundled recording.
try() { # what, command
    (cd "$scratch" && env XDG_DATA_HOME="$scratch/$1" XDG_CONFIG_HOME="$scratch/$1" XDG_STATE_HOME="$scratch/$1" \
        "$2" run "$recording" --to de --headless --fast --export "$scratch/$1.srt" >/dev/null 2>"$scratch/$1.log") ||
        { tail -n 5 "$scratch/$1.log" >&2; fail "$1"; }
    [[ -s $scratch/$1.srt ]] || fail "$1: nothing was exported"
    (cd "$scratch" && "$2" --version)
    echo "  $1 works ($((SECONDS - said)) s)"
}
# What was resolved for the release, so that nothing is compiled or downloaded again.
export PIP_FIND_LINKS="$work/wheels $work/llama" UV_FIND_LINKS="$work/wheels,$work/llama"

step "checksums and bill of materials"
(cd dist && sha256sum --quiet -c SHA256SUMS)
"$work/env/bin/python" -c "
import json, sys
parts = {row['name'].lower(): row for row in json.load(open(sys.argv[1]))['components']}
for name in ('pyside6_essentials', 'llama_cpp_python', 'faster-whisper', 'ctranslate2', 'numpy'):
    assert name in parts and parts[name]['version'], name
print(f'  {len(parts)} components')" "dist/surtitle-$version.cdx.json"

step "wheel in a fresh environment"
for name in LICENSE resources/NOTICES.md; do
    unzip -l "$wheel" | grep -q "dist-info/licenses/$name" || fail "$name is not in the wheel"
done
try venv "$work/env/bin/surtitle"

step "source archive → wheel, the same files"
"$work/tools/bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$scratch/sdist" "dist/surtitle-$version.tar.gz"
diff <(unzip -Z1 "$wheel" | sort) <(unzip -Z1 "$scratch"/sdist/*.whl | sort) || fail "the source archive lacks files"
echo "  ($((SECONDS - said)) s)"

step "pipx install, uv tool install"
"$work/tools/bin/python" -m pip install --quiet pipx uv
PIPX_HOME=$scratch/pipx PIPX_BIN_DIR=$scratch/pipx-bin "$work/tools/bin/pipx" install --quiet "$wheel[laptop]"
try pipx "$scratch/pipx-bin/surtitle"
said=$SECONDS
UV_TOOL_DIR=$scratch/uv UV_TOOL_BIN_DIR=$scratch/uv-bin "$work/tools/bin/uv" tool install --quiet \
    --python "$(readlink -f "$work/env/bin/python")" "$wheel[laptop]"
try uv "$scratch/uv-bin/surtitle"

packaging/test-deb.sh "$(ls dist/*.deb)"
