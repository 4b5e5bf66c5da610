#!/bin/sh
# The second step of the image: the screens. The names on them are settings of this step (PRODUCT_NAME, CONTACT_ADDRESS
# and so on). The credentials are never sent: they only make it a live build, without the sandbox's banner.
set -eu
cd "$(dirname "$0")/../.."
export DISCORD_CLIENT_ID=none DISCORD_CLIENT_SECRET=none DISCORD_BOT_TOKEN=none
export SECRET_KEY=not-needed-to-build-the-screens-at-all
.venv/bin/python -m app.build
.venv/bin/python -m tools.bundle "$1"
