#!/usr/bin/env bash
# build-and-run.sh COMPILER PREFIX FOLDER: builds and runs the consumer with what pkg-config says.
set -euo pipefail
compiler=$1 prefix=$2 folder=$3
sources=$(dirname "${BASH_SOURCE[0]}")/..
export PKG_CONFIG_PATH=$prefix/share/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}

mkdir -p "$folder"
read -ra flags < <(pkg-config --cflags kunci-hiredis)
read -ra libraries < <(pkg-config --libs kunci-hiredis)
for unit in main other; do
    "$compiler" -std=c++20 -O2 -Wall -Wextra -Wpedantic -Werror -DCONSUMER_WITH_HIREDIS "${flags[@]}" \
        -c "$sources/$unit.cpp" -o "$folder/$unit.o"
done
"$compiler" "$folder/main.o" "$folder/other.o" "${libraries[@]}" -o "$folder/consumer"
"$folder/consumer"
