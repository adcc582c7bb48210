#!/usr/bin/env bash
# Installs the CPU build of torch into the environment of the given Python, for the Hugging Face seams and their tests.
# A plain `pip install torch` on Linux takes a CUDA build of several GB.
set -euo pipefail

python=$1
version=2.13.0
if [[ $("$python" -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null || true) == "$version+cpu" ]]; then
    exit 0
fi
echo "surtitle: installing torch $version, CPU build (about 0.2 GB, once)"
"$python" -m pip install --quiet "torch==$version+cpu" 2>/dev/null && exit 0
# Where the usual index does not carry it: PyTorch's own.
exec "$python" -m pip install --quiet --index-url https://download.pytorch.org/whl/cpu "torch==$version+cpu"
