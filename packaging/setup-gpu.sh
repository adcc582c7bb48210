#!/usr/bin/env bash
# An environment with vLLM for an NVIDIA GPU: looks at driver, memory and disk, says what it will download, installs.
#   packaging/setup-gpu.sh --dry-run     print the plan, change nothing
#   packaging/setup-gpu.sh               install into build/gpu; then build/gpu/bin/surtitle
# Broken off, it goes on where it was: whole files that have arrived are kept until the environment is complete.
#
#   --env DIR        where the environment is made            --python PATH  its Python, 3.11 to 3.13
#   --program PATH   a wheel of Surtitle (default: this checkout)
#   --wheels DIR     wheels that are taken from there         --pip DIR      a folder with pip (default: the Python's own)
set -euo pipefail

RAM_GIB=12
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program="" env="" wheels="" pip_folder="" dry_run=0 python=""
while (($#)); do
    case $1 in
    --dry-run) dry_run=1 ;;
    --env | --python | --program | --wheels | --pip)
        [[ $# -ge 2 ]] || { echo "$1 needs a value; see the head of $0." >&2; exit 2; }
        case $1 in
        --env) env=$2 ;;
        --python) python=$2 ;;
        --program) program=$2 ;;
        --wheels) wheels=$2 ;;
        --pip) pip_folder=$2 ;;
        esac
        shift
        ;;
    *)
        echo "usage: $0 [--dry-run] [--env DIR] [--python PATH] [--program PATH] [--wheels DIR] [--pip DIR]" >&2
        exit 2
        ;;
    esac
    shift
done
fail() { echo "$1" >&2; exit 2; }
python=${python:-$("$here/find-python.sh")}
program=${program:-$(cd "$here/.." && pwd)}
env=${env:-$(cd "$here/.." && pwd)/build/gpu}
machine=$(uname -m)

# ---------------------------------------------------------------- the machine

[[ $(uname -s) == Linux && $machine == x86_64 ]] ||
    fail "vLLM's wheels are for Linux on x86_64, and this is $(uname -s) on $machine: use the preset remote with a server elsewhere."
[[ -n $python ]] && "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' ||
    fail "vLLM needs Python 3.11, 3.12 or 3.13: name one with --python."
"$python" -c 'import pathlib, sysconfig, sys; sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' ||
    fail "vLLM compiles small kernels as it starts and needs Python's headers: install python3-dev."
command -v cc >/dev/null || fail "vLLM compiles small kernels as it starts and needs a C compiler: install gcc."
command -v nvidia-smi >/dev/null || fail "There is no NVIDIA driver here (nvidia-smi is missing): install it, or use the preset laptop."
query=$(nvidia-smi --query-gpu=driver_version,memory.total,compute_cap,name --format=csv,noheader,nounits 2>/dev/null) ||
    fail "The NVIDIA driver does not answer (nvidia-smi failed): restart the machine, or install the driver again."
# The card with the most memory decides.
IFS=',' read -r driver memory_mib capability name < <(sort -t, -k2 -n -r <<<"$query" | sed 's/, */,/g' | sed -n 1p)
[[ $driver =~ ^[0-9]+\. && $memory_mib =~ ^[0-9]+$ ]] ||
    fail "The NVIDIA driver gives no version or memory (${query%%$'\n'*}): it may be a slice of a card; this needs a whole one."
major=${driver%%.*}
if ((major >= 580)); then
    flavour="CUDA 13, from the Python package index"
    indexes=()
elif ((major >= 525)); then
    version=$(sed -nE "s/.*'vllm==([0-9.]+);.*/\1/p" "$here/../pyproject.toml" 2>/dev/null | head -n 1)
    version=${version:-$("$python" -c 'import re, sys, zipfile
names = zipfile.ZipFile(sys.argv[1])
text = names.read(next(n for n in names.namelist() if n.endswith("METADATA"))).decode()
print(re.search(r"vllm==([0-9.]+)", text)[1])' "$program")}
    flavour="CUDA 12.9, from wheels.vllm.ai and download.pytorch.org"
    indexes=(--extra-index-url "https://wheels.vllm.ai/$version/cu129" --extra-index-url https://download.pytorch.org/whl/cu129)
else
    fail "The NVIDIA driver $driver is too old: vLLM needs 525 or newer (580 for its CUDA 13 build)."
fi
((${capability/./} >= 75)) || fail "The GPU $name has compute capability $capability, and vLLM needs 7.5 or higher."
gib=$((memory_mib / 1024))
((memory_mib >= 15000)) || fail "The GPU $name has $gib GiB of memory, and the smallest GPU preset needs 16 GB."
ram_gib=$(free -g | awk '/^Mem:/ { print $7 }')
((ram_gib >= RAM_GIB)) || fail "$ram_gib GiB of memory are free, and loading the models needs $RAM_GIB: close other programs."
presets="qwen_low_latency"
((memory_mib >= 39000)) && presets+=", gemma_low_latency, gemma_high_latency"

# ---------------------------------------------------------------- the plan

place=$env
while [[ ! -e $place ]]; do place=$(dirname "$place"); done
[[ -w $place ]] || fail "$env cannot be made ($place cannot be written): choose another place with --env."
echo "driver      $driver, $name, $gib GiB: presets $presets"
echo "vLLM        $flavour"
echo "environment $env, Python $("$python" -c 'import platform; print(platform.python_version())')"
if [[ -f $env/.surtitle-ready ]]; then
    echo "It is complete already; to make it anew, delete it first."
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pip() {
    if [[ -n $pip_folder ]]; then
        PYTHONPATH=$pip_folder "$1" -m pip --disable-pip-version-check "${@:2}"
    else
        "$1" -m pip --disable-pip-version-check "${@:2}"
    fi
}
wanted=("$program[laptop,gpu]" "${indexes[@]}")
[[ -n $wheels ]] && wanted+=(--find-links "$wheels")
asked=$python
[[ -x $env/bin/python ]] && asked=$env/bin/python
echo "asking the index what has to be downloaded …"
if ! pip "$asked" install --dry-run --quiet --report "$work/report.json" "${wanted[@]}" >"$work/log" 2>&1; then
    grep -iE 'error' "$work/log" | tail -n 3 >&2 || true
    fail "The packages cannot be resolved: without a network try again later, otherwise the reason stands above."
fi
read -r files bytes < <("$python" - "$work/report.json" "$work/list" <<'PY'
import json, sys, urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlsplit

def size(row):
    url = row["download_info"]["url"]
    parts = urlsplit(url)
    name = f"{row['metadata']['name']} {row['metadata']['version']}"
    if parts.scheme == "file":
        path = Path(unquote(parts.path))
        return (path.stat().st_size if path.is_file() else 0), name
    request = urllib.request.Request(url, method="HEAD", headers={"User-Agent": "surtitle"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return int(answer.headers.get("Content-Length") or 0), name

with ThreadPoolExecutor(8) as pool:
    sizes = sorted(pool.map(size, json.load(open(sys.argv[1]))["install"]), reverse=True)
Path(sys.argv[2]).write_text("".join(f"  {number / 1e6:7.0f} MB  {name}\n" for number, name in sizes if number > 50e6))
print(len(sizes), sum(number for number, _ in sizes))
PY
) || true
[[ -n ${bytes:-} ]] || fail "The index does not say how large its files are (no network?): try again later."
# Each file lies once in the cache and once where pip unpacks it; unpacked they are about two and a half times as large.
needed=$((bytes * 9 / 2 + 500000000))
free=$(($(df --output=avail -B1 "$place" | tail -n 1)))
echo "download    $files packages, $((bytes / 1000000)) MB; the larger ones:"
cat "$work/list"
echo "disk        $((needed / 1000000000)) GB while installing, $((free / 1000000000)) GB are free at $place; weights of a hub come on top"
((free >= needed)) || fail "There is not enough room at $place: free some, or choose another place with --env."
if ((dry_run)); then
    echo "This was the plan; nothing was changed."
    exit 0
fi

# ---------------------------------------------------------------- the environment

mkdir -p "$env/.cache" "$env/.tmp"
if [[ ! -x $env/bin/python ]]; then
    if [[ -n $pip_folder ]]; then
        "$python" -m venv --without-pip "$env"
    else
        "$python" -m venv "$env"
        pip "$env/bin/python" install --quiet --upgrade pip
    fi
fi
if ! TMPDIR=$env/.tmp pip "$env/bin/python" install --cache-dir "$env/.cache" --retries 3 "${wanted[@]}"; then
    rm -rf "$env/.tmp"
    fail "The installation stopped (the reason stands above); what has arrived is kept in $env: start again to go on."
fi
"$env/bin/python" -P -c 'import torch, vllm; torch.cuda.init(); print("torch", torch.__version__, "vLLM", vllm.__version__)' ||
    fail "vLLM is installed in $env but does not start with this driver: nothing uses it; the reason stands above."
rm -rf "$env/.cache" "$env/.tmp"
touch "$env/.surtitle-ready"
echo "Done: $env/bin/surtitle (a packaged program uses it by itself from now on)."
