#!/usr/bin/env bash
# check-layering.sh FOLDER: checks the includes of every header below FOLDER/kunci against the one-way rule
# of dependency. Prints each offence as file:line and fails if there was one.
set -euo pipefail
cd "$1"

# Each layer, the headers in it, and the layers that it may include besides itself.
layers='
vocabulary  | version.hpp time.hpp errc.hpp error.hpp detail/* lock_key.hpp lock_token.hpp observer.hpp lock_options.hpp client_options.hpp |
clock       | clock.hpp             | vocabulary
connection  | connection/*          | vocabulary
scripts     | scripts/*             | connection vocabulary
protocol    | protocol/*            | scripts connection vocabulary
driver      | driver/*              | protocol scripts connection clock vocabulary
guard       | lock_guard.hpp        | driver protocol scripts connection clock vocabulary
operations  | lock_operations.hpp   | guard driver protocol scripts connection clock vocabulary
lock        | distributed_lock.hpp  | operations guard driver protocol scripts connection clock vocabulary
mutex       | distributed_mutex.hpp | lock operations guard driver protocol scripts connection clock vocabulary
kunci       | kunci.hpp             | mutex lock operations guard driver protocol scripts connection clock vocabulary
adapters    | adapters/*            | connection clock vocabulary
hiredis     | hiredis.hpp           | adapters connection clock vocabulary
models      | testing/*             | scripts connection clock vocabulary
testing     | testing.hpp           | models scripts connection clock vocabulary
'

# Only these include headers of third parties.
third_party_layers=' adapters '

# These decide, and others do: no threads, no sockets, no look at a clock.
pure_layers=' vocabulary connection scripts protocol '
impure_includes='^(thread|mutex|shared_mutex|condition_variable|semaphore|latch|barrier|future|poll\.h|netdb\.h|pthread\.h|netinet/.*|arpa/.*|sys/(socket|epoll|select|poll|un)\.h)$'
# time.hpp defines the clock that others may look at.
clock_definition=kunci/time.hpp

standard_or_system='^([a-z0-9_]+|(sys|netinet|arpa|linux)/[a-z0-9_]+\.h|(dlfcn|errno|fcntl|limits|netdb|poll|pthread|sched|signal|stdlib|string|strings|time|unistd)\.h)$'

offences=0
offend() {
    printf '%s\n' "$*"
    offences=$((offences + 1))
}

# layer_of HEADER: sets layer (empty: none) and allowed.
layer_of() {
    local name patterns pattern
    while IFS='|' read -r name patterns allowed; do
        for pattern in $patterns; do
            # shellcheck disable=SC2053 # a pattern on purpose
            if [[ $1 == kunci/$pattern ]]; then
                layer=${name// /}
                return
            fi
        done
    done <<<"$layers"
    layer=''
}

check_include() { # WHERE TARGET LAYER ALLOWED
    local where=$1 target=$2 from=$3 may=$4 layer allowed
    if [[ $target != kunci/* ]]; then
        if [[ ! $target =~ $standard_or_system && $third_party_layers != *" $from "* ]]; then
            offend "$where: <$target> is neither a standard nor a system header; only adapters/ may include it"
        fi
        if [[ $pure_layers == *" $from "* && $target =~ $impure_includes ]]; then
            offend "$where: <$target> does not belong into the layer '$from', which is free of threads and I/O"
        fi
        return
    fi
    layer_of "$target"
    if [[ ! -f $target ]]; then
        offend "$where: there is no $target"
    elif [[ $layer != "$from" && " $may " != *" $layer "* ]]; then
        offend "$where: the layer '$from' must not include $target of the layer '$layer'"
    fi
}

set -f # patterns stay patterns
headers=$(find kunci -type f | LC_ALL=C sort)
[ -n "$headers" ] || offend "$1/kunci: no headers there"
for header in $headers; do
    layer_of "$header"
    own_layer=$layer may_include=$allowed
    if [[ -z $own_layer ]]; then
        offend "$header: belongs to no layer; add it to the table in check-layering.sh"
        continue
    fi
    while IFS=: read -r line text; do
        if [[ $text =~ ^[[:space:]]*#[[:space:]]*include[[:space:]]*\<([^\>]+)\> ]]; then
            check_include "$header:$line" "${BASH_REMATCH[1]}" "$own_layer" "$may_include"
        else
            offend "$header:$line: include headers as <...>"
        fi
    done < <(grep -nE '^[[:space:]]*#[[:space:]]*include' "$header" || true)
    if [[ $pure_layers == *" $own_layer "* && $header != "$clock_definition" ]]; then
        while IFS=: read -r line text; do
            offend "$header:$line: looks at a clock, which the layer '$own_layer' must not"
        done < <(grep -nE '::now\(' "$header" || true)
    fi
done

[ "$offences" -eq 0 ] || exit 1
