#!/usr/bin/env bash
# layering_test.sh CHECK: tests check-layering.sh itself. It must accept a sound tree, and refuse one that
# has a single forbidden line.
set -euo pipefail
check=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# tree HEADER LINE: a small sound tree, with LINE added to HEADER.
tree() {
    rm -rf "$work/kunci"
    mkdir -p "$work"/kunci/{adapters,connection,protocol,testing}
    echo '// steady_clock::now()' >"$work/kunci/time.hpp"
    echo '#include <mutex>' >"$work/kunci/clock.hpp"
    echo '#include <kunci/time.hpp>' >"$work/kunci/connection/reply.hpp"
    printf '#include <vector>\n#include <kunci/connection/reply.hpp>\n' >"$work/kunci/protocol/lease.hpp"
    printf '#include <kunci/clock.hpp>\n#include <kunci/protocol/lease.hpp>\n' >"$work/kunci/distributed_lock.hpp"
    echo '#include <kunci/distributed_lock.hpp>' >"$work/kunci/kunci.hpp"
    printf '#include <hiredis/hiredis.h>\n#include <sys/socket.h>\n' >"$work/kunci/adapters/client.hpp"
    echo '#include <kunci/clock.hpp>' >"$work/kunci/testing/manual_clock.hpp"
    if [ $# -gt 0 ]; then
        printf '%s\n' "$2" >>"$work/kunci/$1"
    fi
}

fail() {
    printf 'FAILED: %s\n' "$*"
    failures=$((failures + 1))
}

refuses() { # HEADER LINE EXPECTED
    local output
    tree "$1" "$2"
    if output=$(bash "$check" "$work" 2>&1); then
        fail "accepts '$2' in $1"
    elif [[ $output != "kunci/$1"*"$3"* || $output == *$'\n'* ]]; then
        fail "for '$2' in $1 it says: $output"
    fi
}

tree
output=$(bash "$check" "$work" 2>&1) || fail "refuses a sound tree: $output"

refuses protocol/lease.hpp '#include <kunci/distributed_lock.hpp>' "must not include kunci/distributed_lock.hpp"
refuses protocol/lease.hpp '#include <kunci/clock.hpp>' 'must not include kunci/clock.hpp'
refuses protocol/lease.hpp '#include <thread>' '<thread> does not belong'
refuses protocol/lease.hpp '#  include <sys/socket.h>' '<sys/socket.h> does not belong'
refuses protocol/lease.hpp 'auto t = SteadyClock::now();' 'looks at a clock'
refuses connection/reply.hpp '#include <kunci/protocol/lease.hpp>' 'must not include kunci/protocol/lease.hpp'
refuses connection/reply.hpp '#include <hiredis/hiredis.h>' 'only adapters/ may include it'
refuses time.hpp '#include <condition_variable>' '<condition_variable> does not belong'
refuses time.hpp '#include <kunci/connection/reply.hpp>' 'must not include kunci/connection/reply.hpp'
refuses distributed_lock.hpp '#include <kunci/adapters/client.hpp>' 'must not include kunci/adapters/client.hpp'
refuses distributed_lock.hpp '#include <openssl/sha.h>' 'only adapters/ may include it'
refuses kunci.hpp '#include <kunci/testing/manual_clock.hpp>' 'must not include kunci/testing/manual_clock.hpp'
refuses adapters/client.hpp '#include <kunci/protocol/lease.hpp>' 'must not include kunci/protocol/lease.hpp'
refuses testing/manual_clock.hpp '#include <kunci/distributed_lock.hpp>' 'must not include kunci/distributed_lock.hpp'
refuses kunci.hpp '#include "time.hpp"' 'include headers as <...>'
refuses kunci.hpp '#include <kunci/nowhere.hpp>' 'there is no kunci/nowhere.hpp'
refuses stray.hpp '#include <vector>' 'belongs to no layer'

[ "$failures" -eq 0 ] || exit 1
