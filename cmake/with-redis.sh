#!/usr/bin/env bash
# with-redis.sh COMMAND ARGUMENT...: runs the command with the URL of a private redis-server as its last
# argument, and ends the server afterwards, however the command ended. The result is the command's.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/dev-tools.sh"

folder=$(mktemp -d)
redis_pid=
finish() {
    [ -z "$redis_pid" ] || stop_process "$redis_pid"
    rm -rf "$folder"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

start_redis "$folder"
"$@" "$redis_url"
