#!/usr/bin/env bash
# Texts of the interface and their translations, with Qt's own tools, which come with PySide6-Essentials.
#   packaging/translations.sh update [CODE…]  collect the texts of the code into resources/translations/surtitle_CODE.ts
#                                             (all that exist; a new CODE begins a new language)
#   packaging/translations.sh compile         surtitle_*.ts → surtitle_*.qm, which the program loads
# Translate a .ts file with Qt Linguist (`pyside6-linguist`) or by hand; a compiled language is offered at once.
set -euo pipefail

shopt -s nullglob
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${VENV:-.venv}/bin
folder=resources/translations
case ${1:-} in
update)
    shift
    files=("$folder"/surtitle_*.ts)
    for code in "$@"; do files+=("$folder/surtitle_$code.ts"); done
    # -locations none: line numbers would change with every edit of the code
    mapfile -t sources < <(grep -rlE 'translate\(|QT_TRANSLATE_NOOP' app --include='*.py' | sort)
    for file in "${files[@]}"; do
        code=${file##*surtitle_}
        "$bin/pyside6-lupdate" "${sources[@]}" -locations none -no-obsolete -source-language en \
            -target-language "${code%.ts}" -ts "$file"
    done
    ;;
compile)
    for file in "$folder"/surtitle_*.ts; do
        "$bin/pyside6-lrelease" -silent "$file" -qm "${file%.ts}.qm"
    done
    ;;
*)
    echo "usage: $0 update [CODE…] | compile" >&2
    exit 2
    ;;
esac
