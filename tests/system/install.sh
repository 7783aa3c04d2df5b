#!/usr/bin/env bash
# Install what the system tests need beside Python packages, as far as it is missing: Debian's packages, as root, and
# Azurite from npm.
set -euo pipefail

missing=()
{ command -v initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb'; } >/dev/null || missing+=(postgresql)
command -v chromium >/dev/null || missing+=(chromium)
command -v chromedriver >/dev/null || missing+=(chromium-driver)
command -v systemd-analyze >/dev/null || missing+=(systemd)
command -v strace >/dev/null || missing+=(strace)
command -v npm >/dev/null || missing+=(npm)

azurite() {
  [ -x .venv/azurite/node_modules/.bin/azurite-blob ] ||
    npm install --prefix .venv/azurite --silent --no-save --no-audit --no-fund azurite@3.35.0
}

if [ ${#missing[@]} -eq 0 ]; then
  azurite
  exit
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "the system tests need ${missing[*]}; on Debian: sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq --yes --no-install-recommends "${missing[@]}" >/dev/null
azurite
