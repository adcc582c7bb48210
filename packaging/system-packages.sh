#!/usr/bin/env bash
# Installs the system packages that are missing, with apt, as root or through sudo.
#   packaging/system-packages.sh run    what the program needs
#   packaging/system-packages.sh test   and what the tests need beside it
#   packaging/system-packages.sh packages   and what the test of the packages needs beside it
# Off Debian and its relatives it installs nothing and says so.
set -euo pipefail

mode=${1:-}
if [[ $mode != run && $mode != test && $mode != packages ]]; then
    echo "usage: $0 run|test|packages" >&2
    exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# package: reason. Of names joined by "|" any one will do (newer releases renamed some libraries).
wanted=(
    "libportaudio2: microphone capture"
    "libegl1: Qt, drawing"
    "libgl1: Qt, drawing"
    "libglib2.0-0t64|libglib2.0-0: Qt, event loop"
    "libfontconfig1: Qt, finding fonts"
    "libdbus-1-3: Qt, desktop services"
    "libxkbcommon-x11-0: Qt, keyboard on X11"
    "libxcb-cursor0: Qt, window on X11"
    "libxcb-icccm4: Qt, window on X11"
    "libxcb-image0: Qt, window on X11"
    "libxcb-keysyms1: Qt, window on X11"
    "libxcb-randr0: Qt, window on X11"
    "libxcb-render-util0: Qt, window on X11"
    "libxcb-shape0: Qt, window on X11"
    "libxcb-xinerama0: Qt, window on X11"
    "fonts-dejavu-core: a font to draw subtitles with"
    "libgomp1: the translator's threads"
)
# The translator's library is compiled while the environment is made, unless it is already there.
if ! compgen -G "$here/../.venv/lib/python3.*/site-packages/llama_cpp_python-*.dist-info" >/dev/null; then
    wanted+=("g++: compiles the translator's library (llama.cpp)")
fi
if [[ ! -x $here/../.venv/bin/python && -z $("$here/find-python.sh") ]]; then
    wanted+=("python3-venv: the environment in .venv")
fi
if [[ $mode == packages ]]; then
    wanted+=(
        "debootstrap: a clean root to install the Debian package in"
        "xvfb: a screen for its window"
        "xdotool: keys in its window"
        "unzip: looking into the wheel"
    )
fi
if [[ $mode == test ]]; then
    wanted+=(
        "xvfb: a screen for the window's tests"
        "xauth: access to that screen"
        "xdotool: keys and clicks in the window's tests"
        "pulseaudio: a microphone without hardware"
        "pulseaudio-utils: playing into that microphone"
        "haproxy: two MT servers behind a proxy"
        "libasound2-plugins: makes that microphone visible to PortAudio"
    )
    # The word aligner of the calibration tests is compiled too.
    python=$here/../.venv/bin/python
    [[ -x $python ]] || python=$("$here/find-python.sh")
    if ! "${python:-python3}" -c 'import pathlib, sysconfig as s, sys; sys.exit(not pathlib.Path(s.get_path("include"), "Python.h").exists())' 2>/dev/null; then
        wanted+=("python3-dev: headers to compile the word aligner")
    fi
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "surtitle: not a Debian or Ubuntu system, so no system packages are installed; what is needed:"
    printf '  %s\n' "${wanted[@]}"
    exit 0
fi

declare -A installed=()
names=()
for entry in "${wanted[@]}"; do
    IFS='|' read -ra alternatives <<<"${entry%%:*}"
    names+=("${alternatives[@]}")
done
# dpkg-query fails when one name is unknown and still lists the others.
while read -r status package; do
    [[ $status == installed ]] && installed[$package]=1
done < <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${names[@]}" 2>/dev/null || true)

missing=()
for entry in "${wanted[@]}"; do
    IFS='|' read -ra alternatives <<<"${entry%%:*}"
    for name in "${alternatives[@]}"; do
        [[ -n ${installed[$name]:-} ]] && continue 2
    done
    missing+=("$entry")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $EUID -ne 0 ]]; then
    if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
        as_root=(sudo)
    else
        list=""
        for entry in "${missing[@]}"; do
            name=${entry%%:*}
            list+=" ${name##*|}"
        done
        echo "surtitle: system packages are missing and this user may not install them; have an administrator run: apt-get install$list" >&2
        # The program says for itself what it cannot do; a test run would only fail in odd ways.
        [[ $mode == run ]] && exit 0
        exit 1
    fi
fi

apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq "$@" >/dev/null
}
echo "surtitle: installing system packages with apt:"
printf '  %s\n' "${missing[@]}"
if ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null; then
    apt update || true  # what cannot be installed then says so itself
fi
names=()
compiler=""
for entry in "${missing[@]}"; do
    IFS='|' read -ra alternatives <<<"${entry%%:*}"
    for name in "${alternatives[@]}"; do
        if apt-cache show "$name" >/dev/null 2>&1; then
            break
        fi
    done
    if [[ $name == g++ ]]; then compiler=$name; else names+=("$name"); fi
done
# A list of packages that is older than the archive fails once.
fetch() {
    apt install -y --no-install-recommends "$@" && return
    apt update
    apt install -y --no-install-recommends "$@"
}
[[ ${#names[@]} -eq 0 ]] || fetch "${names[@]}"
# Without a compiler the program runs too, more slowly.
[[ -z $compiler ]] || (fetch "$compiler") || echo "surtitle: $compiler could not be installed" >&2
