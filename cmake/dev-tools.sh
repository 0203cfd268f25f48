# Shell functions that tests/run, examples/run and cmake/with-redis.sh share. To be sourced by bash.

say() { printf '\n== %s\n' "$*"; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# has_header NAME: whether the compiler finds it, from a package or installed by hand.
has_header() { printf '#include <%s>\n' "$1" | c++ -std=c++20 -E -x c++ - >/dev/null 2>&1; }
has_command() { command -v "$1" >/dev/null 2>&1; }

# Each prints the packages of Debian and Ubuntu that are missing for one purpose, one a line.
missing_build_tools() {
    has_command c++ || echo g++
    has_command cmake || echo cmake
    has_command ninja || echo ninja-build
    has_command pkg-config || echo pkg-config
    has_header hiredis/hiredis.h || echo libhiredis-dev
}
missing_redis() {
    # Not the package redis-server: see prepare_redis_server.
    { has_command redis-cli && { has_command redis-server || has_command redis-check-rdb; }; } || echo redis-tools
}
missing_test_needs() {
    has_command openssl || echo openssl # makes the certificates for the tests of TLS
    has_header gtest/gtest.h || echo libgtest-dev
    has_header catch2/catch_all.hpp || has_header catch2/catch.hpp || echo catch2
}
missing_clang() { has_command clang++ || echo clang; }
missing_lint_tools() {
    has_command clang-tidy || echo clang-tidy
    has_command clang-format || echo clang-format
}

# install_packages NAME...: with apt-get, nothing if there are no names.
install_packages() {
    [ $# -gt 0 ] || return 0
    has_command apt-get || die "these are missing, and there is no apt-get to install them: $*"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        has_command sudo || die "these are missing, and neither root nor sudo is there to install them: $*"
        as_root=(sudo)
    fi
    say "installing $*"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# require_version NAME AT_LEAST ACTUAL
require_version() {
    [ "$(printf '%s\n%s\n' "$2" "$3" | sort -V | head -n 1)" = "$2" ] ||
        die "$1 $2 or newer is needed, this is $3"
}

# prepare_redis_server FOLDER: sets KUNCI_TEST_REDIS_SERVER to a redis-server program.
#
# Where there is none, the package redis-server is not what we install: it would start a system service on
# port 6379 and leave it running. The package redis-tools has the very same program and no service:
# redis-check-rdb is redis-server, which goes by the name that it is called by.
prepare_redis_server() {
    if [ -z "${KUNCI_TEST_REDIS_SERVER:-}" ]; then
        if has_command redis-server; then
            KUNCI_TEST_REDIS_SERVER=$(command -v redis-server)
        else
            mkdir -p "$1"
            KUNCI_TEST_REDIS_SERVER=$1/redis-server
            ln -sfn "$(command -v redis-check-rdb)" "$KUNCI_TEST_REDIS_SERVER"
        fi
    fi
    "$KUNCI_TEST_REDIS_SERVER" --version | grep -q '^Redis server' ||
        die "$KUNCI_TEST_REDIS_SERVER is no redis-server"
    export KUNCI_TEST_REDIS_SERVER
}

# start_redis FOLDER: a private server on a free port of 127.0.0.1 that keeps its files in FOLDER. Sets
# redis_pid and redis_url; the caller ends it.
start_redis() {
    local port attempt
    for attempt in 1 2 3 4 5 6 7 8 9 10; do
        port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
        "${KUNCI_TEST_REDIS_SERVER:-redis-server}" --port "$port" --bind 127.0.0.1 --unixsocket "$1/socket" \
            --dir "$1" --save '' --appendonly no --logfile "$1/log" </dev/null >/dev/null 2>&1 &
        redis_pid=$!
        # Asked on its own socket, so that nobody else's server is taken for ours; it opens that last.
        while kill -0 "$redis_pid" 2>/dev/null; do
            if [ "$(redis-cli -s "$1/socket" ping 2>/dev/null)" = PONG ]; then
                redis_url=redis://127.0.0.1:$port/0
                return 0
            fi
            sleep 0.02
        done
        wait "$redis_pid" || true # the port was taken: try another
    done
    die "redis-server does not start: $(cat "$1/log" 2>/dev/null)"
}

# stop_process PID: asks it to end and waits for that.
stop_process() {
    kill "$1" 2>/dev/null || return 0
    wait "$1" 2>/dev/null || true
}
