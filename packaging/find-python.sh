#!/usr/bin/env bash
# Prints the first Python that Surtitle runs on and that can make a virtual environment; prints nothing if none does.
for candidate in python3 python3.12 python3.11 python3.13 python; do
    if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
        echo "$candidate"
        exit 0
    fi
done
