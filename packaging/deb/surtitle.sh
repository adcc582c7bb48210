#!/bin/sh
# The program of the package: window and terminal come from /usr/lib/surtitle, the engine from the person's own folder.
PYTHONPATH=/usr/lib/surtitle/python PYTHONNOUSERSITE=1 exec /usr/bin/python3 -P -m app.cli "$@"
