#!/usr/bin/env bash
# cases_test.sh TESTS: each public report O01 to O73 on distributed locks is answered by a test in the folder
# TESTS: its id stands in a comment right above, "// O07, O24". Prints what is missing.
set -euo pipefail
cd "$1"

# Several nodes; being woken, and the order of waiters: these come with what they are about.
later=' O58 O59 O60 O62 O63 O64 O65 O68 '

answered=$(grep -rhoE --include='*.cpp' --include='*.hpp' '^ *// O[0-9]{2}(, O[0-9]{2})*$' . | grep -oE 'O[0-9]{2}' | sort -u)
missing=0
for number in {1..73}; do
    id=$(printf 'O%02d' "$number")
    if [[ $later != *" $id "* && $'\n'$answered$'\n' != *$'\n'"$id"$'\n'* ]]; then
        echo "no test answers $id"
        missing=$((missing + 1))
    fi
done
[ "$missing" -eq 0 ] || exit 1
