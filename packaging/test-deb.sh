#!/usr/bin/env bash
# Installs a Debian package into a clean root and uses it as a person would, under Xvfb. As root:
#   packaging/test-deb.sh dist/surtitle_VERSION_amd64.deb [ROOT]
# ROOT (default build/clean-root) is made with debootstrap when it is not there; a home in it is made anew.
# Every step says how long it took; the first that fails ends the test with its reason.
set -euo pipefail

deb=$(realpath "${1:?usage: $0 PACKAGE.deb [ROOT]}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
root=$(realpath -m "${2:-$here/build/clean-root}")
[[ $EUID -eq 0 ]] || { echo "A clean root is made as root: run it with sudo." >&2; exit 2; }
for tool in debootstrap Xvfb xdotool; do
    command -v $tool >/dev/null || { echo "$tool is needed: apt-get install debootstrap xvfb xdotool" >&2; exit 2; }
done
said=$SECONDS
step() { echo "  ($((SECONDS - said)) s)"; said=$SECONDS; echo "== $1"; }
fail() { echo "FAILED: $1" >&2; exit 1; }
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
# As a person with an empty home; extra variables come first.
person() { inside runuser -u person -- env HOME=/home/person XDG_RUNTIME_DIR=/tmp DISPLAY="${display:-}" "$@"; }
xserver="" display="" window="" proxy=""
cleanup() {
    [[ -z $proxy ]] || kill "$proxy" 2>/dev/null || true
    [[ -z $window ]] || kill "$window" 2>/dev/null || true
    [[ -z $xserver ]] || kill "$xserver" 2>/dev/null || true
    for place in home/small dev/shm dev proc; do
        mountpoint -q "$root/$place" && umount -l "$root/$place"
    done
    return 0
}
trap cleanup EXIT

step "clean root in $root"
if [[ ! -d $root ]]; then
    # whole or absent: one that was broken off is made anew
    rm -rf "$root.part" && mkdir -p "$(dirname "$root")"
    # shellcheck disable=SC1091
    debootstrap --variant=minbase --include=ca-certificates "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root.part" >"$root.log" 2>&1 ||
        fail "debootstrap ($root.log)"
    mv "$root.part" "$root"
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev"
inside userdel --remove person >/dev/null 2>&1 || true
inside useradd --create-home person

step "apt-get install ./$(basename "$deb")"
cp "$deb" "$root/tmp/surtitle.deb"
inside apt-get update -qq
inside apt-get install -y -qq --reinstall --no-install-recommends /tmp/surtitle.deb >"$root.apt.log" 2>&1 || { tail -n 20 "$root.apt.log"; fail "apt"; }
for file in bin/surtitle share/applications/surtitle.desktop share/icons/hicolor/scalable/apps/surtitle.svg \
    share/metainfo/surtitle.metainfo.xml share/doc/surtitle/NOTICES.md share/doc/surtitle/LICENSE; do
    [[ -s $root/usr/$file ]] || fail "/usr/$file is not in the package"
done
du -sh "$root/usr/lib/surtitle" | sed "s|$root||"
inside runuser -u person -- env HOME=/home/person surtitle --version
# What else is called `app` or `engine` in the person's own packages, or where they stand, is not the program.
for place in "$root/home/person" "$root/home/person/.local/lib/python3.$(inside python3 -c 'import sys; print(sys.version_info[1])')/site-packages"; do
    for name in app engine; do
        mkdir -p "$place/$name" && echo 'raise SystemExit("another version")' >"$place/$name/__init__.py"
    done
done
inside chown -R person: /home/person
for words in --version sessions; do
    person env --chdir=/home/person surtitle $words >"$root.said" 2>&1 || { cat "$root.said"; fail "beside another version"; }
    ! grep -q "another version" "$root.said" || { cat "$root.said"; fail "another version was loaded"; }
done
echo "  beside another version in the person's home: the packaged one runs"
rm -rf "$root/home/person/app" "$root/home/person/engine"

home=$root/home/person
data=$home/.local/share/surtitle
refused() { # what, sentence, command …: one sentence on the last line, status 2, and no engine
    local what=$1 sentence=$2 status=0
    shift 2
    "$@" >"$root.said" 2>&1 || status=$?
    grep -qE "$sentence" "$root.said" && [[ $status -eq 2 ]] || { cat "$root.said"; fail "$what (status $status)"; }
    ! grep -q Traceback "$root.said" || fail "$what: a traceback"
    ! compgen -G "$data/engine/*/faster_whisper" >/dev/null || fail "$what: an engine was left"
    ! compgen -G "$data/engine/.*-*" >/dev/null || fail "$what: half an engine was left"
    echo "  $what: $(tail -n 1 "$root.said")"
}
step "what goes wrong is one sentence, and nothing is installed"
refused "no network" "The download stopped at .*no network" person https_proxy=http://127.0.0.1:1 http_proxy=http://127.0.0.1:1 surtitle setup
exec 5< <(exec python3 "$here/packaging/cut_proxy.py" 100000000)
proxy=$!
read -r port <&5
refused "network gone half-way" "The download stopped at .* of .*no network" person https_proxy=http://127.0.0.1:$port surtitle setup
compgen -G "$data/engine/*.downloads/*.whl" >/dev/null || fail "nothing of the first half was kept"
refused "read-only home" "cannot be installed into .*XDG_DATA_HOME" person XDG_DATA_HOME=/usr/share surtitle setup
mkdir -p "$root/home/small" && mount -t tmpfs -o size=200M tmpfs "$root/home/small" && chmod 777 "$root/home/small"
refused "no space" "needs .* of disk, and .* are free" person XDG_DATA_HOME=/home/small surtitle setup
umount "$root/home/small"
refused "broken off half-way" "was not installed; what was downloaded is kept" person timeout --preserve-status --signal=INT 14 surtitle setup
kept=$(find "$data/engine" -name '*.whl' 2>/dev/null | wc -l)
echo "  files kept for the next time: $kept"

step "first start in a window under Xvfb, then the bundled recording"
display_file=$(mktemp)
Xvfb -displayfd 4 -screen 0 1280x800x24 -nolisten tcp 4>"$display_file" 2>/dev/null &
xserver=$!
for _ in {1..50}; do [[ -s $display_file ]] && break || sleep 0.1; done
display=":$(cat "$display_file")"
recording=/usr/lib/surtitle/python/engine/resources/recordings/two-voices.flac
person QT_QPA_PLATFORM=xcb surtitle run "$recording" --to de --export /home/person/demo.srt /home/person/demo.txt >"$root.window.log" 2>&1 &
window=$!
DISPLAY=$display timeout 180 xdotool search --sync --onlyvisible --name '^Surtitle: first start' >/dev/null || { cat "$root.window.log"; fail "no first window"; }
sleep 1
shot() { chroot "$root" env QT_QPA_PLATFORM=xcb DISPLAY="$display" PYTHONPATH=/usr/lib/surtitle/python python3 -P -c \
    "import sys; from PySide6.QtGui import QGuiApplication as A; a = A([]); a.primaryScreen().grabWindow(0).save(sys.argv[1])" "/tmp/$1" && cp "$root/tmp/$1" "$root.$1"; }
first=$(DISPLAY=$display xdotool search --onlyvisible --name '^Surtitle: first start' | head -n 1)
DISPLAY=$display xdotool windowfocus --sync "$first" key Return
sleep 6
shot first-start.png
started=$SECONDS
while ! compgen -G "$data/engine/*/faster_whisper" >/dev/null; do
    kill -0 "$window" 2>/dev/null || { cat "$root.window.log"; fail "the program ended in its first start"; }
    ((SECONDS - started < 900)) || { shot stuck.png; fail "no engine after 15 minutes ($root.stuck.png)"; }
    sleep 1
done
echo "  the engine is installed after $((SECONDS - started)) s; $(du -sh "$data/engine" | cut -f1) in the home"
DISPLAY=$display timeout 180 xdotool search --sync --onlyvisible --name '^Surtitle: English to German' >/dev/null || { cat "$root.window.log"; fail "no subtitle window"; }
sleep 35
shot window.png
wait "$window" || { cat "$root.window.log"; fail "the demo"; }
window=""
[[ -s $home/demo.srt && -s $home/demo.txt ]] || fail "no exports"
echo "  $(du -sh "$home/.cache/surtitle" | cut -f1) in the cache"
sed 's/^/    /' "$home/demo.txt"

step "the same without a display"
display="" person surtitle run "$recording" --to fr --headless --fast --export /home/person/fr.txt >/dev/null 2>"$root.headless.log" || { cat "$root.headless.log"; fail "headless"; }
[[ -s $home/fr.txt ]] || fail "no French"

step "an older installation is replaced, another architecture refused"
repacked() { # what to change in the control file
    rm -rf "$root/tmp/old"
    dpkg-deb -R "$deb" "$root/tmp/old"
    sed -i "$1" "$root/tmp/old/DEBIAN/control"
    touch "$root/tmp/old/usr/lib/surtitle/python/app/gone.py"
    dpkg-deb --root-owner-group -Znone -b "$root/tmp/old" "$root/tmp/old.deb" >/dev/null
}
repacked 's/^Version: .*/Version: 0.0.1/'
inside dpkg -i /tmp/old.deb >>"$root.apt.log" 2>&1 || fail "the older version"
inside apt-get install -y -qq /tmp/surtitle.deb >>"$root.apt.log" 2>&1 || fail "the upgrade"
[[ ! -e $root/usr/lib/surtitle/python/app/gone.py ]] || fail "the older version left a file"
person surtitle setup | grep -q "The engine is installed" || fail "the engine has to be installed again"
repacked 's/^Architecture: .*/Architecture: s390x/'
! inside dpkg -i /tmp/old.deb >"$root.said" 2>&1 || fail "another architecture was installed"
echo "  $(grep -m1 'does not match' "$root.said")"
person surtitle setup | grep -q "The engine is installed" || fail "the refused package has broken the installed one"

step "uninstalled: transcripts stay"
sessions=$(find "$data/sessions" -name '*.jsonl' | wc -l)
((sessions >= 2)) || fail "there are $sessions sessions"
inside apt-get remove -y -qq surtitle >>"$root.apt.log" 2>&1
[[ ! -e $root/usr/lib/surtitle && ! -e $root/usr/bin/surtitle ]] || fail "something is left in /usr"
[[ $(find "$data/sessions" -name '*.jsonl' | wc -l) -eq $sessions ]] || fail "transcripts are gone"
echo "  $sessions sessions are still there"
step "passed"
