#!/bin/sh
# The last step of the image: the account that runs everything, and the only directory that it may write to. The code
# belongs to root, so no process can change it.
set -eu
groupadd --gid 10001 holdfast
useradd --uid 10001 --gid holdfast --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin holdfast
install -d -o holdfast -g holdfast -m 0700 /data
