#!/bin/sh
# The first step of the image: the pinned Python packages in .venv, each file checked by its hash. Nothing is compiled:
# all of them have wheels, except nextcord for Python 3.11, which is pure Python.
set -eu
cd "$(dirname "$0")/../.."
unpacked=""
if python3 -c 'import sys; sys.exit(sys.version_info >= (3, 12))'; then unpacked="--no-binary=nextcord"; fi
python3 -m venv .venv
.venv/bin/python -m pip install --no-input --no-cache-dir --disable-pip-version-check --progress-bar off \
    --only-binary=:all: $unpacked --require-hashes --requirement deploy/requirements.txt
