#!/bin/sh
# answers.sh PROGRAM MISUSES [ERRORS]: the list of errors in each function's comment, against what calls really answer
# (test/contract, and test/unit/misuse, which the second program runs).
#
#   - an answer that a call of the tables gives is in the list of its function
#   - an error in a list is the answer of some call; or a line of test/contract/elsewhere names the unit test that has
#     it, and that test's file has the error
#   - in a forked child a call answers what the last column of the table in tickwheel.h says
#   - each function that returns an int has a call in the tables
# ERRORS, a file, gets "FUNCTION, tab, ERROR, tab, what has it" for each documented error.
. "$(dirname "$0")/../support/script.sh"
[ $# -ge 2 ] || { echo "usage: answers.sh PROGRAM MISUSES [ERRORS]" >&2; exit 2; }

# Headers as arguments: "FUNCTION ANSWER" lines.
listed() { awk -f man/text.awk -f man/model.awk -f man/parse.awk -f man/answers.awk "$@"; }

# $1: what the program has printed, $2: a list. Prints the answers that the list lacks.
undocumented() {
	awk -F'\t' '
		FNR == NR {
			split($0, field, " ")
			known[field[1]] = 1
			if (field[2] ~ /^-E/)
				has[field[1], field[2]] = 1
			else if (field[2] ~ /^(>=|any)/)
				any[field[1]] = 1
			else if (field[2] != "")
				names[field[1]] = names[field[1]] " " field[2]
			next
		}
		/^=/ { value[substr($1, 2)] = $2; next }
		{
			function_name = $1
			sub(/\(.*/, "", function_name)
			if (!known[function_name])
				print function_name " is in no header: delete its rows in test/contract"
			if (has[function_name, $2])
				next
			if ($2 !~ /^-/) {
				if (any[function_name] || (names[function_name] == "" && $2 == 0))
					next
				n = split(names[function_name], name, " ")
				found = 0
				for (i = 1; i <= n; i++)
					if (name[i] == $2 || (name[i] in value && value[name[i]] == $2))
						found = 1
				if (found)
					next
			}
			print function_name ": " $2 " is not in its list; " $3 ": " $1
		}' "$2" "$1" | awk '{ key = $1 $2 } !seen[key]++'
}

# $1: what the program has printed, $2: a list, $3: other places. Prints what no call answers.
unproduced() {
	awk -F'\t' '
		FILENAME == ARGV[1] {
			function_name = $1
			sub(/\(.*/, "", function_name)
			seen[function_name " " $2] = 1
			next
		}
		FILENAME == ARGV[2] {
			split($0, field, " ")
			elsewhere[field[1] " " field[2]] = 1
			next
		}
		/ -E/ && !($0 in seen) && !($0 in elsewhere) { print $0 ": no call answers this" }
		$0 in seen && $0 in elsewhere { print $0 ": a call answers this: delete its line in elsewhere" }
		{ all[$0] = 1 }
		END {
			for (line in elsewhere)
				if (!(line in all))
					print line ": no header lists this: delete its line in elsewhere"
		}' "$1" "$3" "$2"
}

listed include/tickwheel.h include/tickwheel/*.h >"$work/list"
[ "$(grep -c -- ' -E' "$work/list")" -gt 100 ] || { cp "$work/list" "$work/found"; fail "few errors are listed"; }
sed '/^#/d; /^$/d' test/contract/elsewhere >"$work/elsewhere"

# ---- the checks find what is planted

printf 'tw_x(1)\t-EBUSY\there\ntw_x(2)\t-EPERM\there\ntw_y(1)\t7\there\n' >"$work/planted"
printf '%s\n' 'tw_x -EPERM' 'tw_x -EIO' 'tw_x -ELOOP' 'tw_y 0' 'tw_y TW_GONE' >"$work/planted_list"
printf 'tw_x -ELOOP file test\n' >"$work/planted_elsewhere"
[ "$(undocumented "$work/planted" "$work/planted_list" | grep -c 'not in its list')" -eq 2 ] ||
	fail "an undocumented answer is not found"
[ "$(unproduced "$work/planted" "$work/planted_list" "$work/planted_elsewhere")" = \
	"tw_x -EIO: no call answers this" ] || fail "an answer of nobody is not found"

# ---- the checks

TW_ANSWERS=$work/misuses "$2" --jobs 2 >"$work/found" 2>&1 || fail "test/unit/misuse failed"
"$1" "$work/misuses" >"$work/answers" || fail "the program failed"
undocumented "$work/answers" "$work/list" >"$work/found"
[ ! -s "$work/found" ] || fail "calls answer what the headers do not say"
unproduced "$work/answers" "$work/list" "$work/elsewhere" >"$work/found"
[ ! -s "$work/found" ] || fail "the headers list answers that no call gives; test/contract/elsewhere is for tests"
while read -r name error file test; do
	case $file in system | bound | broken) continue ;; esac
	{ [ -e "test/unit/$file" ] && grep -q "^Test([a-z_]*, $test[,)]" "test/unit/$file" &&
		grep -q -- "${error#-}\|faults_" "test/unit/$file" &&
		grep -q "$name\b" "test/unit/$file" test/support/*.c; } ||
		echo "$name $error: not in a test $test of test/unit/$file"
done <"$work/elsewhere" >"$work/found"
[ ! -s "$work/found" ] || fail "test/contract/elsewhere names what is not there"
awk -f test/contract/table.awk include/tickwheel.h >"$work/table"
awk -F'\t' '
	FNR == NR { pattern[++n] = $1; last[n] = $2; gsub(/\*/, ".*", pattern[n]); next }
	$3 != "in a forked child" { next }
	{
		name = $1
		sub(/\(.*/, "", name)
		for (i = 1; i <= n && name !~ "^" pattern[i] "$"; i++) {
		}
		if (last[i] == "-EPERM" ? $2 != "-EPERM" : last[i] == "frees" ? $2 == "-EPERM" : 0)
			print name " answers " $2 ", and the table of tickwheel.h says " last[i]
	}' "$work/table" "$work/answers" >"$work/found"
[ ! -s "$work/found" ] || fail "the last column of the table in tickwheel.h is not true"
sed -n '/^TW_API int/,/;/p' include/tickwheel/*.h | grep -oE '^TW_API int tw_[a-z_]+' | sed 's/.* //' |
	grep -vx tw_version | while read -r name; do
	grep -q "^$name(" "$work/answers" || echo "$name"
done >"$work/found"
[ ! -s "$work/found" ] || fail "these functions have no call in test/contract"
[ -z "${3:-}" ] || awk -F '\t' -v OFS='\t' '
	FILENAME == ARGV[1] { sub(/\(.*/, "", $1); if (!(($1, $2) in has)) has[$1, $2] = "test/contract, " $3; next }
	FILENAME == ARGV[2] { split($0, f, " "); has[f[1], f[2]] = f[4] ? "test/unit/" f[3] ", " f[4] : f[3]; next }
	/ -E/ { split($0, f, " "); print f[1], f[2], has[f[1], f[2]] }' \
	"$work/answers" "$work/elsewhere" "$work/list" >"$3"
echo "answers: ok ($(grep -vc '^=' "$work/answers") calls, $(grep -c -- ' -E' "$work/list") errors in lists)"
