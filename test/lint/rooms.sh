#!/bin/sh
# rooms.sh BUILD_DIR: what keeps the sources walkable.
#
#   - no .c, .h, .cpp, .hpp, .sh or .mk file of the tree has more than 450 lines: library, public headers, tests, bench,
#     tools, examples. Only build/ is left out. The search needs no git, so it works in a tarball too.
#   - no folder of the library has more than 16 source files, no struct more than 25 members
#   - at most 20 files ask whether this is a forked child; all other functions leave it to the entry check
#     (mpsc/base/entry.h)
#   - a function that several files share is declared by a header of the folder of the file that defines it
. "$(dirname "$0")/../support/script.sh"

[ $# -eq 1 ] || { echo "usage: rooms.sh BUILD_DIR" >&2; exit 2; }
build=$1
find mpsc wheel executor -name '*.[ch]' | sort >"$work/files"

find . \( -path ./build -o -name .git \) -prune -o -type f \( -name '*.[ch]' -o -name '*.[ch]pp' -o -name '*.sh' -o \
	-name '*.mk' \) -exec wc -l {} + |
	awk '$1 > 450 && $2 != "total" { sub("^[.]/", "", $2); print $2 ": " $1 " lines" }' | sort >"$work/found"
[ ! -s "$work/found" ] || fail "files of more than 450 lines"

sed -n 's|/[^/]*\.c$||p' "$work/files" | uniq -c | awk '$1 > 16 { print $2 ": " $1 " source files" }' >"$work/found"
[ ! -s "$work/found" ] || fail "folders of more than 16 source files"

# Members by their declarators: what stands before each semicolon or comma of the struct's own level.
# shellcheck disable=SC2046 # a list of files
awk '
	FNR == 1 { depth = 0 }
	{
		line = $0
		while (comment || index(line, "/*")) {
			if (!comment) {
				rest = rest substr(line, 1, index(line, "/*") - 1)
				line = substr(line, index(line, "/*") + 2)
				comment = 1
			}
			if (!index(line, "*/")) { line = ""; break }
			line = substr(line, index(line, "*/") + 2)
			comment = 0
		}
		line = rest line
		rest = ""
		if (!depth && line ~ /^struct [a-z_]+ \{/) { name = $2; members = 0; depth = 1; next }
		if (!depth) next
		gsub(/\([^()]*\)/, "", line)
		for (i = 1; i <= length(line); i++) {
			c = substr(line, i, 1)
			if (c == "{") depth++
			if (c == "}" && --depth == 0) {
				if (members > 25) print FILENAME ": struct " name ": " members " members"
				break
			}
			if (depth == 1 && (c == ";" || c == ",")) members++
		}
	}' $(cat "$work/files") >"$work/found"
[ ! -s "$work/found" ] || fail "structs of more than 25 members"

# In code: comments do not count.
# shellcheck disable=SC2046 # a list of files
for file in $(cat "$work/files"); do
	gcc -fpreprocessed -dD -E -P "$file" 2>/dev/null |
		grep -qE 'tw__(forked|origin_inherited|fork_generation)\(|[^{]-EPERM' && echo "$file"
done >"$work/found"
[ "$(wc -l <"$work/found")" -gt 5 ] || fail "the search for fork checks finds too few"
[ "$(wc -l <"$work/found")" -le 20 ] || fail "more than 20 files check for a forked child"

sed -n 's/\.c$//p' "$work/files" | while read -r file; do
	nm "$build/$file.o" | awk '$2 == "T" && $3 ~ /^tw__/ { print $3 }' | while read -r name; do
		grep -qsw "$name" "${file%/*}"/*.h || echo "$file.c: $name"
	done
done >"$work/found"
[ ! -s "$work/found" ] || fail "functions that no header of their folder declares"

echo "rooms: ok"
