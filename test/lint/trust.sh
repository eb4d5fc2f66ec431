#!/bin/sh
# trust.sh [--page ERRORS]: each guarantee is held by tests, and each test holds something. The table "What holds which
# promise" of docs/trust.md is checked:
#
#   - each guarantee of tickwheel.h (G1, G2 ...) has a row, and each row names a test
#   - the files, models and tests of a row exist; a name in backquotes is a folder of test/unit
#   - each model, each stress program and each folder of test/unit is in a row
#   - the files and functions that a model says it is a model of exist: else its protocol is gone, or another one
#
# --page prints the table with the guarantees' words and what each model holds, and the documented errors with what
# holds them. ERRORS has these, from test/contract/answers.sh: FUNCTION, tab, ERROR, tab, HOLDER.
. "$(dirname "$0")/../support/script.sh"

# The rows of a page: PROMISE, tab, FILES, tab, MODELS, tab, TESTS. In FILES a name without a folder has the last one.
rows() {
	awk -F ' *[|] *' -v OFS='\t' '/^\| promise/ { on = 1 } on && !/^\|/ { exit }
		on && NR > 1 && !/^\| (promise|---)/ && !/^\|--/ { print $2, $3, $4, $5 }' "$1"
}
# NAME, tab, WORDS of each guarantee.
guarantees() {
	awk '/^ \*   G[0-9]+ / { if (text) print text; text = $2; $1 = $2 = ""; text = text "\t"; sub(/^ +/, "") }
		text && /^ \* *$/ { print text; exit }
		text { sub(/^ \* +/, ""); text = text (text ~ /\t$/ ? "" : " ") $0 }' include/tickwheel.h
}

# The names in column $2 of page $1, one a line.
names() { rows "$1" | cut -f "$2" | tr ', ' '\n\n' | grep . || :; }

# $1: a page. Prints what is wrong with its table.
wrong() {
	guarantees | cut -f 1 | while read -r g; do
		rows "$1" | grep -q "^$g " || echo "$g has no row"
	done
	rows "$1" | awk -F '\t' '$4 == "" { print $1 ": no test" }'
	rows "$1" | cut -f 2 | tr -d '`,' | while read -r files; do
		folder=
		for file in $files; do
			case $file in headers) continue ;; */*) folder=${file%/*} ;; *) file=$folder/$file ;; esac
			[ -e "$file" ] || echo "$file does not exist"
		done
	done
	names "$1" 3 | while read -r model; do
		[ -e "test/model/$model.pml" ] || echo "$model is no model"
	done
	names "$1" 4 | while read -r test; do
		case $test in
		'`make' | 'bench`') ;;
		\`*\`) [ -d "test/unit/$(echo "$test" | tr -d '`')" ] || echo "$test is no folder of test/unit" ;;
		*) [ -e "test/$test.c" ] || echo "test/$test.c does not exist" ;;
		esac
	done
	for model in test/model/*.pml; do
		names "$1" 3 | grep -qx "$(basename "$model" .pml)" || echo "$model is in no row"
	done
	for test in test/stress/*.c test/fuzz/*.c; do
		name=${test#test/}
		names "$1" 4 | grep -qxF "${name%.c}" || echo "$test is in no row"
	done
	for folder in test/unit/*/; do
		names "$1" 4 | grep -qxF "\`$(basename "$folder")\`" || echo "$folder is in no row"
	done
}

# $@: models. Prints the names before "Modelled" that no source has.
strangers() {
	for model; do
		awk '/Modelled|Guarantees/ { exit } { print }' "$model" | grep -oE '[a-zA-Z0-9_/]+([.][ch]\b)?' |
			grep -E '[a-z]_|__|[.][ch]$' | sort -u | while read -r name; do
			case $name in
			*.[ch]) find mpsc wheel executor -name "${name##*/}" | grep -qE "(^|/)$name$" ;;
			*) grep -rqw -- "$name" mpsc wheel executor include ;;
			esac || echo "$model names $name, which is in no source"
		done
	done
}

# ---- the check finds what is planted

sed '/^| G3 /d; s/^\(| G4 .*| \)[^|]*|$/\1|/; s/| word, batch/| gone, batch/; s|stress/loop|stress/gone|' \
	docs/trust.md >"$work/planted.md"
wrong "$work/planted.md" >"$work/found"
for planted in 'G3 has no row' 'G4 cancel wins: no test' 'test/stress/gone.c does not exist' \
	'batch.pml is in no row'; do
	grep -q "$planted" "$work/found" || fail "not found: $planted"
done

sed '1,3s|\(tw__[a-z_]*\)|\1_gone|; 1,3s|drain[.]c|gone.c|' test/model/base.pml >"$work/base.pml"
[ "$(strangers "$work/base.pml" | grep -c gone)" -ge 1 ] || fail "a stranger is not found"

# ---- the table

{ wrong docs/trust.md && strangers test/model/*.pml; } >"$work/found"
if [ -s "$work/found" ]; then
	echo "trust: the table of promises in docs/trust.md, or the models" >&2
	sed 's/^/  /' "$work/found" >&2
	exit 1
fi
[ "${1:-}" = --page ] || {
	echo "trust: ok ($(rows docs/trust.md | wc -l) promises, $(guarantees | wc -l) guarantees)"
	exit
}

# ---- the page

# The first sentence of a model's comment, and the guarantees that its runs hold.
model() {
	awk '/^ \* [A-Z]/ && !what { what = $0; sub(/^ \* /, "", what); sub(/[:.,;] .*|[:.]$/, "", what) }
		/^ \*   run: / {
			sub(/^ \*   run: *([A-Z0-9_]+ )*[A-Z0-9_]*   */, "")
			sub(/,.*/, "")
			holds[$0]
		}
		/^ \*   mutant: / { mutants++ }
		/\*\// { exit }
		END {
			for (h in holds) all = all (all ? "; " : "") h
			printf "%s | %s | %d |\n", what, all, mutants
		}' "$1"
}
echo '# What holds what'
echo
echo 'Made by test/lint/trust.sh from the headers, the models and the tests.'
printf '\n## Guarantees\n\n| promise | models | tests |\n|---|---|---|\n'
{ guarantees && rows docs/trust.md; } | awk -F '\t' '
	NF == 2 { words[$1] = ": " $2; next }
	{ name = $1; sub(/ .*/, "", name); printf "| %s%s | %s | %s |\n", $1, words[name], $3, $4 }'
printf '\n## Models\n\n| model | of | holds | mutants |\n|---|---|---|---|\n'
for file in test/model/*.pml; do echo "| $(basename "$file" .pml) | $(model "$file")"; done
printf '\n## Documented errors\n\n| call | error | held by |\n|---|---|---|\n'
awk -F '\t' '{ print "| " $1 " | " $2 " | " $3 " |" }' "$2"
