#!/bin/sh
# Makes the user the appliance runs as. The data directory is made by systemd,
# and stays when the package goes.
set -e
if ! getent passwd holdfast >/dev/null; then
  useradd --system --user-group --home-dir /var/lib/holdfast --no-create-home --shell /usr/sbin/nologin holdfast
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  echo 'holdfast is installed. Start it with: systemctl enable --now holdfast'
fi
