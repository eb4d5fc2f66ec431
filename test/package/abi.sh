#!/bin/sh
# abi.sh [--accept] LIBRARY: what programs were compiled against is still there. The exported symbols, the declarations
# of functions, the sizes of public structs, the places of their fields and the values of enumerators are compared with
# test/package/abi.golden, for the core, or abi-layers.golden, for the layers.
#
# What is new is told, and is no error: programs of yesterday do not use it. What has changed or gone is one: --accept
# if it is meant, and say so in CHANGELOG.md. Exported symbols must be the declared ones in any case. Knob: CC.
. "$(dirname "$0")/../support/script.sh"

accept=
if [ "${1:-}" = --accept ]; then
	accept=1
	shift
fi
[ $# -eq 1 ] || { echo "usage: abi.sh [--accept] LIBRARY" >&2; exit 2; }
library=$1
case $library in
*-layers.*) header=tickwheel/layers.h golden=test/package/abi-layers.golden ;;
*) header=tickwheel.h golden=test/package/abi.golden ;;
esac

# The headers' own text: without comments and line marks, one declaration a line.
headers=$(sed -n 's/^#include "\(tickwheel\/\)*\([a-z]*\.h\)"$/include\/tickwheel\/\2/p' "include/$header" | sort)
for h in $headers; do
	# shellcheck disable=SC2086 # CC may carry options
	grep -v '^[[:space:]]*#' "$h" | ${CC:-cc} -fpreprocessed -E -P -x c - 2>/dev/null
done | grep -v '^extern "C"' | tr '\n\t' '  ' | sed 's/  */ /g' >"$work/text"

# ---- symbols, and that they are those declared

nm -D --defined-only "$library" | awk '$2 != "A" && $3 !~ /@TICKWHEEL_PRIVATE$/ { sub(/@.*/, "", $3); print $3 }' |
	sort -u >"$work/exported"
grep -o 'TW_API [^;{]*' "$work/text" | sed 's/^TW_API //; s/ $//' | sort -u >"$work/declared_whole"
sed 's/ *(.*//; s/.*[ *]//' "$work/declared_whole" | sort -u >"$work/declared"
if ! diff "$work/declared" "$work/exported" >"$work/differ"; then
	echo "abi: declared (<) and exported (>) are not the same:" >&2
	sed 's/^/  /' "$work/differ" >&2
	exit 1
fi
sed 's/^/function /' "$work/declared_whole" >"$work/now"

# ---- structs and enumerators, by a program that prints them

awk -v header="$header" '
	{ text = $0 }
	END {
		print "#include <stdio.h>\n#include <stddef.h>\n#include \"" header "\"\nint main(void)\n{"
		while (match(text, /(struct|enum) *(tw_[a-z_]+)? *\{[^{}]*\}/)) {
			whole = substr(text, RSTART, RLENGTH)
			text = substr(text, RSTART + RLENGTH)
			head = whole; sub(/ *\{.*/, "", head)
			body = whole; sub(/^[^{]*\{/, "", body); sub(/\}$/, "", body)
			if (head ~ /^enum/) enumerators(body); else fields(head, body)
		}
		print "\treturn 0;\n}"
	}
	function enumerators(body,    n, i, parts) {
		n = split(body, parts, ",")
		for (i = 1; i <= n; i++) {
			sub(/=.*/, "", parts[i]); gsub(/[ ]/, "", parts[i])
			if (parts[i] != "")
				printf "\tprintf(\"enumerator %s = %%lld\\n\", (long long)%s);\n", parts[i], parts[i]
		}
	}
	function fields(head, body,    n, i, parts, m, j, names, name) {
		printf "\tprintf(\"%s: %%zu bytes\\n\", sizeof(%s));\n", head, head
		n = split(body, parts, ";")
		for (i = 1; i <= n; i++) {
			if (parts[i] ~ /\(\*/) {
				name = parts[i]; sub(/^[^(]*\(\*/, "", name); sub(/\).*/, "", name)
				place(head, name)
				continue
			}
			m = split(parts[i], names, ",")
			for (j = 1; j <= m; j++) {
				name = names[j]; sub(/ *\[.*/, "", name); sub(/ *$/, "", name); sub(/.*[ *]/, "", name)
				if (name != "")
					place(head, name)
			}
		}
	}
	function place(head, name) {
		printf "\tprintf(\"%s.%s at %%zu, %%zu bytes\\n\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n",
			head, name, head, name, head, name
	}
' "$work/text" >"$work/print.c"
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -Iinclude -o "$work/print" "$work/print.c"
"$work/print" >>"$work/now"
sort -u -o "$work/now" "$work/now"

if [ -n "$accept" ]; then
	cp "$work/now" $golden
	echo "abi: $golden has $(wc -l <$golden) lines now"
	exit 0
fi

comm -23 $golden "$work/now" >"$work/gone"
comm -13 $golden "$work/now" >"$work/new"
if [ -s "$work/gone" ]; then
	echo "abi: these were promised, and are gone or are otherwise now (make abi-accept, if it is meant):" >&2
	sed 's/^/  - /' "$work/gone" >&2
	sed 's/^/  + /' "$work/new" >&2
	exit 1
fi
new=$(wc -l <"$work/new")
[ "$new" -eq 0 ] || note=", $new new that are not in $golden yet (make abi-accept)"
echo "abi: ok ($(wc -l <"$work/exported") symbols, $(grep -c '^struct.*: ' "$work/now") structs${note:-})"
