#!/usr/bin/env bash
# check-readme.sh FOLDER: checks FOLDER/README.md. Every ```cpp block must be the code of an example, so that
# it is known to compile. The line before the block names it:
#
#     <!-- examples/01_hello_lock.cpp [hello] -->
#
# and the example marks it with `// [hello]` and `// [/hello]` on lines of their own; how far the region is
# indented does not count. The README is short, too: its first code comes early and it ends soon.
set -euo pipefail
cd "$1"
[ -f README.md ] || {
    echo "README.md: there is none in $1"
    exit 1
}

longest=300
first_code_within=20

offences=0
offend() {
    printf 'README.md:%s\n' "$*"
    offences=$((offences + 1))
}

# unindent: takes away the indentation that all lines share.
unindent() {
    awk '
        { line[NR] = $0 }
        /[^ ]/ { match($0, /^ */); if (least == "" || RLENGTH < least) least = RLENGTH }
        END { for (i = 1; i <= NR; i++) print substr(line[i], least + 1) }'
}

# region FILE NAME
region() {
    awk -v name="$2" '
        { text = $0; gsub(/^ +| +$/, "", text) }
        text == "// [/" name "]" { inside = 0 }
        inside { print }
        text == "// [" name "]" { inside = 1 }' "$1" | unindent
}

# blocks: each ```cpp block as "line file name" and, in the file FOLDER/line, its code.
blocks() {
    awk -v folder="$1" '
        /^```/ && inside { inside = 0; close(out); next }
        inside && cpp { print > out; next }
        inside { next }
        /^```/ {
            inside = 1
            cpp = ($0 ~ /^```(cpp|c\+\+)/)
            if (!cpp) { before = ""; next }
            out = folder "/" NR
            printf "" > out
            file = name = "-"
            if (match(before, /^<!-- [^ ]+ \[[^]]+\] -->$/)) {
                split(before, part, " ")
                file = part[2]
                name = substr(part[3], 2, length(part[3]) - 2)
            }
            print NR, file, name
        }
        /[^ ]/ { before = $0 }' README.md
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

lines=$(wc -l <README.md)
[ "$lines" -lt "$longest" ] || offend "$lines: this long; it must have fewer than $longest lines"
first_code=$(grep -n -m 1 '^```' README.md | cut -d: -f1 || true)
[ -n "$first_code" ] || offend "1: has no code"
[ "${first_code:-0}" -le "$first_code_within" ] ||
    offend "$first_code: the first code; it must come within the first $first_code_within lines"

blocks "$work" >"$work/list"
while read -r line file name; do
    if [ "$file" = - ]; then
        offend "$line: before C++ code must stand where it comes from: <!-- examples/file.cpp [region] -->"
    elif [[ $file != examples/* || ! -f $file ]]; then
        offend "$line: there is no example $file"
    elif [ -z "$(region "$file" "$name")" ]; then
        offend "$line: $file has no region [$name]"
    elif ! difference=$(diff -u --label "$file [$name]" --label "README.md:$line" \
        <(region "$file" "$name") "$work/$line"); then
        offend "$line: differs from $file [$name]:"
        printf '%s\n' "$difference"
    fi
done <"$work/list"

[ "$offences" -eq 0 ] || exit 1
