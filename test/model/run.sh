#!/bin/sh
# Runs the models of the protocols through spin: models.sh [--mutants] FOLDER [FILE...]
#
# A model says in its first comment how it is to be checked, with the switches of its preprocessor:
#     run: SWITCH...  guarantees       must hold
#     mutant: SWITCH... NAME  text     must fail, or else the model cannot see what it is there for
# Two blanks or more end the switches. A text goes on in lines that are indented further. A mutant's rule is removed by
# the commands of sed below it, which change the model after that comment. Without commands NAME is a switch, too.
# Exhaustive searches only: one that was cut short by its depth or memory fails. Two files at a time, the largest, which
# take longest, first. A file that has passed is not searched again until it changes.
set -u
. "$(dirname "$0")/../lint/unchanged.sh"

kind=run kind_option=
if [ "$1" = --mutants ]; then
	kind=mutant kind_option=--mutants
	shift
fi
out=$1
shift
[ $# -gt 0 ] || set -- test/model/*.pml
mkdir -p "$out"
if [ $# -gt 1 ]; then
	# shellcheck disable=SC2086 # an option, or none
	ls -S "$@" | xargs -P 2 -n 1 "$0" $kind_option "$out" || exit 1
	exit
fi

# search FILE FOLDER PATCH SWITCH...: pan's report is in FOLDER/report
search() {
	model=$(realpath "$1") folder=$2 patch=$3
	shift 3
	rm -rf "$folder"
	mkdir -p "$folder"
	if [ -n "$patch" ]; then
		sed -e '1,/^ \*\//b' -e "$patch" "$model" >"$folder/mutant.pml" || return 1
		if cmp -s "$model" "$folder/mutant.pml"; then
			echo "models: \"$patch\" changes nothing in $model" >&2
			return 1
		fi
		model=$(realpath "$folder/mutant.pml")
	fi
	# shellcheck disable=SC2046 # as many words as switches
	(cd "$folder" && spin -a $(printf ' -D%s' MODEL "$@") "$model" >spin.log 2>&1 &&
		gcc -O1 -w -DSAFETY -DMEMLIM=2000 -o pan pan.c >gcc.log 2>&1 &&
		./pan -m1000000 >report 2>&1)
	if [ ! -s "$folder/report" ] || grep -q 'spin: .*\(syntax\|error\|Error\)' "$folder/spin.log"; then
		echo "models: $model ($*) could not be checked, see $folder" >&2
		return 1
	fi
}

# check FILE: searches all that its first comment names
check() {
	file=$1 failed=0
	name=$(basename "$file" .pml)
	awk -v kind="$kind:" '
		function end() { if (on) print line "\t" patch; on = 0; patch = "" }
		/^ \*\// { exit }
		on && /^ \*       (s?\/)/ { sub(/^ \* +/, ""); patch = patch (patch ? "; " : "") $0; next }
		on && /^ \*       / { sub(/^ \* +/, " "); line = line $0; next }
		{ end(); on = /^ \*   [a-z]/ && $2 == kind }
		on { line = $0; sub(/^ \*   [a-z]+: /, "", line) }
		END { end() }' "$file" >"$out/$name.$kind"
	while IFS='	' read -r line patch <&3; do
		all_switches=$(printf '%s\n' "$line" | sed 's/   *.*//')
		switches=$all_switches
		[ -z "$patch" ] || switches=$(printf '%s\n' "$switches" | sed 's/ *[^ ]*$//')
		text=$(printf '%s\n' "$line" | sed 's/.*   *//')
		folder=$out/$name-$(echo "$all_switches" | tr ' ' '-')
		# shellcheck disable=SC2086 # a list of switches
		search "$file" "$folder" "$patch" $switches || { failed=1; continue; }
		states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$folder/report")
		errors=$(sed -n 's/.*errors: \([0-9]*\)$/\1/p' "$folder/report")
		verdict=$(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' "$folder/report")
		cut=$(grep -cE 'search depth too small|out of memory|reached -DMEMLIM|hash array|Search not completed' \
			"$folder/report")
		if [ $kind = run ]; then
			if [ "${errors:-1}" = 0 ] && [ "$cut" = 0 ]; then
				printf 'model  %-6s %-20s %8s states, holds: %s\n' "$name" "$switches" "$states" "$text"
			else
				printf 'model  %-6s %-20s FAILED: %s (%s)\n' "$name" "$switches" \
					"${verdict:-cut short}" "$folder"
				failed=1
			fi
		elif [ "${errors:-0}" != 0 ] && [ -n "$verdict" ]; then
			printf 'mutant %-6s %-30s fails, as it must: %s\n' "$name" "$all_switches" "$text"
		else
			printf 'mutant %-6s %-30s DOES NOT FAIL (%s)\n' "$name" "$all_switches" "$folder"
			failed=1
		fi
	done 3<"$out/$name.$kind"
	return $failed
}

all_failed=0
for file; do
	key=$(key_of "$kind $(spin -V) $(gcc --version)" "$0" "$file")
	unless_passed "$out/$(basename "$file" .pml).$kind.passed" "$key" check "$file" || all_failed=1
done
exit $all_failed
