#!/usr/bin/env bash
# Installs llama-cpp-python into the environment of the given Python, in the version that pyproject.toml names, and
# makes the stamp file once it is there.
#   packaging/install-llama.sh PYTHON STAMP
# It exists as source only; the compiler takes minutes, so this shows how far it is. Where it cannot be compiled this
# says so and makes no stamp: the laptop preset then runs on torch, and the next run tries again.
set -euo pipefail

python=$1
stamp=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
requirement=$(sed -nE 's/.*"(llama-cpp-python==[^"]+)".*/\1/p' "$here/../pyproject.toml")
version=${requirement#*==}
instead="the laptop preset will run on torch, more slowly; to mend it, install a C++ compiler (on Debian and Ubuntu the package g++) and run this again"

present=$("$python" -c 'from importlib.metadata import version; print(version("llama-cpp-python"))' 2>/dev/null || true)
if [[ $present == "$version" ]]; then
    touch "$stamp"
    exit 0
fi
rm -f "$stamp"

compiler=""
for name in "${CXX:-c++}" g++ clang++; do
    if command -v "$name" >/dev/null; then
        compiler=$name
        break
    fi
done
if [[ -z $compiler ]]; then
    echo "surtitle: no C++ compiler is here, so the translator's library (llama.cpp) is left out: $instead" >&2
    exit 0
fi

log=$(dirname "$python")/../llama-build.log
echo "surtitle: compiling the translator's library ($requirement): 5 to 8 minutes on two cores, once; log: .venv/llama-build.log"
"$python" -m pip install -v "$requirement" >"$log" 2>&1 &
build=$!
trap 'kill "$build" 2>/dev/null || true' EXIT
start=$SECONDS
last=""
said=0
while kill -0 "$build" 2>/dev/null; do
    sleep 1
    # The build tool prints [step/steps] before each file.
    step=$(grep -oE '^ *\[[0-9]+/[0-9]+\]' "$log" | tail -n 1 | tr -d '[] ' || true)
    elapsed=$((SECONDS - start))
    if [[ -n $step && $step != "$last" ]] && { [[ -t 1 ]] || ((elapsed - said >= 15)); }; then
        line="  file ${step%/*} of ${step#*/}, $((elapsed / 60)) min $((elapsed % 60)) s"
        if [[ -t 1 ]]; then printf '\r%s   ' "$line"; else echo "$line"; fi
        last=$step
        said=$elapsed
    fi
done
[[ -t 1 && -n $last ]] && echo
trap - EXIT
if ! wait "$build"; then
    tail -n 25 "$log" >&2
    echo "surtitle: the translator's library (llama.cpp) did not compile, the end of .venv/llama-build.log is above: $instead" >&2
    exit 0
fi
echo "  done in $(((SECONDS - start) / 60)) min $(((SECONDS - start) % 60)) s"
touch "$stamp"
