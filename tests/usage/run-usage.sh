#!/usr/bin/env bash
# run-usage.sh NAME PROGRAM [URL]: runs a usage program and compares what it prints with what it promises.
set -euo pipefail
name=$1 program=$2 url=${3:-}

expect() { # WHAT EXPECTED ACTUAL
    if [ "$2" != "$3" ]; then
        printf '%s prints\n%s\nbut should print\n%s\n' "$1" "$3" "$2"
        exit 1
    fi
}

# One of two that fire at once runs the job for five seconds, which its TTL of two would not last; the other
# skips at once.
cron() {
    local second
    output=$(mktemp)
    trap 'rm -f "$output"' EXIT
    "$program" "$url" >"$output" &
    first=$!
    while [ "$(redis-cli -u "$url" exists lock:daily-notif)" != 1 ]; do
        kill -0 "$first" || { echo "the first ended without the lock"; exit 1; }
        sleep 0.01
    done
    second=$("$program" "$url")
    expect 'the second' skipped "$second"
    kill -0 "$first" 2>/dev/null || { echo 'the second did not skip at once'; exit 1; }
    wait "$first"
    expect 'the first' ran "$(cat "$output")"
}

case $name in
cron) cron ;;
checkout)
    expect checkout 'checked out
already being processed, please wait
checked out' "$("$program" "$url")"
    ;;
manual)
    expect manual 'A locks: 1, key lock:daily-recap
B locks: 0
B releases: 0
B refreshes: 0
A refreshes: 1
A releases: 1
A releases again: 0' "$("$program" "$url")"
    ;;
std_mutex)
    expect std_mutex 'transfer
timed: 1' "$("$program" "$url")"
    ;;
unit_test_your_app) expect unit_test_your_app '' "$("$program")" ;;
*)
    echo "nothing is known of what $name prints"
    exit 1
    ;;
esac

if [ -n "$url" ]; then
    expect 'the server afterwards' '' "$(redis-cli -u "$url" keys '*')"
fi
