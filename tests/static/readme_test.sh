#!/usr/bin/env bash
# readme_test.sh CHECK: tests check-readme.sh itself. It must accept a README whose code is an example's, and
# refuse one that is not.
set -euo pipefail
check=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/examples"
failures=0

fail() {
    printf 'FAILED: %s\n' "$*"
    failures=$((failures + 1))
}

cat >"$work/examples/hello.cpp" <<'CODE'
int main() {
    // [hello]
    if (guard) {
        work();
    }

    rest();
    // [/hello]
}
CODE

code='```cpp
if (guard) {
    work();
}

rest();
```'
source='<!-- examples/hello.cpp [hello] -->'
shell='```sh
make
```'

accepts() { # WHAT README
    local output
    printf '%s\n' "$2" >"$work/README.md"
    output=$(bash "$check" "$work" 2>&1) || fail "refuses $1: $output"
}

refuses() { # WHAT README EXPECTED
    local output
    printf '%s\n' "$2" >"$work/README.md"
    if output=$(bash "$check" "$work" 2>&1); then
        fail "accepts $1"
    elif [[ $output != "README.md:"*"$3"* ]]; then
        fail "for $1 it says: $output"
    fi
}

lines() { for ((i = 0; i < $1; i++)); do echo "line $i"; done; }

accepts 'the code of an example' "# kunci
$source
$code
$shell"
accepts 'an empty line between the source and the code' "$source

$code"
accepts 'code in line 20' "$(lines 18)
$source
$code"
refuses 'code without a source' "# kunci
$code" 'before C++ code must stand where it comes from'
refuses 'a second block without a source' "$source
$code
$code" 'before C++ code must stand where it comes from'
refuses 'a source that is not just before the code' "$source
text
$code" 'before C++ code must stand where it comes from'
refuses 'code that was changed' "$source
${code/work/play}" '-    work();'
refuses 'code that lost a line' "$source
${code/rest();
/}" '-rest();'
refuses 'an example that is not there' "${source/hello.cpp/bye.cpp}
$code" 'there is no example examples/bye.cpp'
refuses 'a region that is not there' "${source/\[hello/[bye}
$code" 'has no region [bye]'
refuses 'a README without code' 'kunci' 'has no code'
refuses 'late code' "$(lines 19)
$source
$code" 'the first code'
refuses 'a long README' "$source
$code
$(lines 300)" 'must have fewer than 300 lines'

[ "$failures" -eq 0 ] || exit 1
