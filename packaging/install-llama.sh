#!/usr/bin/env bash
# Installs llama-cpp-python into the environment of the given Python, in the version that pyproject.toml names.
# It exists as source only; the compiler takes minutes, so this shows how far it is.
set -euo pipefail

python=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
requirement=$(sed -nE 's/.*"(llama-cpp-python==[^"]+)".*/\1/p' "$here/../pyproject.toml")
version=${requirement#*==}

present=$("$python" -c 'from importlib.metadata import version; print(version("llama-cpp-python"))' 2>/dev/null || true)
if [[ $present == "$version" ]]; then
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
    echo "surtitle: the translator's library did not compile; the end of .venv/llama-build.log is above (a C++ compiler is needed, on Debian and Ubuntu the package g++)." >&2
    exit 1
fi
echo "  done in $(((SECONDS - start) / 60)) min $(((SECONDS - start) % 60)) s"
