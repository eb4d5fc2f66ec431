#!/bin/sh
# hardened.sh SHARED STATIC: how the libraries were built, seen in the files: no executable stack, read-only relocations
# bound at start, stack protector, shadow stack and branch tracking on x86-64, nothing exported but tw_* and what the
# core keeps for the layers, no segment both writable and executable, no writable table of function pointers, and no
# call that reads the environment.
. "$(dirname "$0")/../support/script.sh"

[ $# -eq 2 ] || { echo "usage: hardened.sh SHARED STATIC" >&2; exit 2; }
shared=$1
static=$2

readelf -W -l "$shared" >"$work/segments"
readelf -W -d "$shared" >"$work/dynamic"
readelf -W -n "$static" >"$work/notes"
readelf -W -h "$shared" >"$work/header"
nm -D --undefined-only "$shared" | awk '{ sub(/@.*/, "", $NF); print $NF }' >"$work/needs"
nm --undefined-only "$static" 2>/dev/null | awk '{ print $NF }' | sort -u >"$work/needs_static"

awk '$1 == "GNU_STACK" { found = 1; bad = $7 ~ /E/ } END { exit !found || bad }' "$work/segments" ||
	fail "the stack is executable"
awk '/^  (LOAD|GNU_RELRO|GNU_STACK)/ && /RWE/ { bad = 1 } END { exit bad }' "$work/segments" ||
	fail "a segment is both writable and executable"
grep -q GNU_RELRO "$work/segments" || fail "no RELRO"
grep -q 'BIND_NOW\|FLAGS_1.*NOW' "$work/dynamic" || fail "not bound at start"
! grep -q 'TEXTREL\|RPATH\|RUNPATH' "$work/dynamic" ||
	fail "text relocations, or a path of its own to look for libraries"
grep -q __stack_chk_fail "$work/needs" || fail "no stack protector"
grep -q '_chk$' "$work/needs" || fail "no FORTIFY"
# Of the objects: the shared library has the mark only where the distribution's own start files have it too.
if grep -q X86-64 "$work/header"; then
	objects=$(ar t "$static" | wc -l)
	[ "$(grep -c 'IBT.*SHSTK' "$work/notes")" -eq "$objects" ] ||
		fail "an object without branch tracking or shadow stack (CET)"
fi

nm -D --defined-only "$shared" | awk '$2 != "A" && $3 !~ /@TICKWHEEL_PRIVATE$/ { sub(/@.*/, "", $3); print $3 }' |
	grep -v '^tw_[a-z]' >"$work/odd" || true
[ ! -s "$work/odd" ] || fail "exported, and not tw_: $(tr '\n' ' ' <"$work/odd")"

for needs in needs needs_static; do
	! grep -xE '(secure_|__secure_)?getenv|environ|__environ|setenv|putenv|unsetenv' "$work/$needs" >"$work/odd" ||
		fail "it reads the environment: $(tr '\n' ' ' <"$work/odd")"
	! grep -xE 'gets|strcpy|strcat|sprintf|vsprintf|system|popen|tmpnam|mktemp|alloca|exec[lv].*' \
		"$work/$needs" >"$work/odd" ||
		fail "it calls what it should not: $(tr '\n' ' ' <"$work/odd")"
done

# All blocks are of the program's allocator (tw_set_allocator).
nm -A "$static" 2>/dev/null | awk '$2 == "U" && $1 !~ /reserve(\.c)?\.o:$/ &&
	$3 ~ /^(malloc|calloc|realloc|aligned_alloc|posix_memalign|free|strn?dup|v?asprintf)$/' >"$work/odd"
[ ! -s "$work/odd" ] || fail "it allocates past tw__alloc: $(tr '\n' ' ' <"$work/odd")"

# Tables of functions lie in read-only memory: an `ops` that is data is a way in.
nm "$shared" | awk '$2 ~ /^[dDbB]$/ && $3 ~ /ops$/ { print $3 }' >"$work/odd"
while read -r name; do
	section=$(readelf -W -s "$shared" | awk -v n="$name" '$8 == n { print $7; exit }')
	kind=$(readelf -W -S "$shared" | sed 's/\[ */[/' | awk -v s="[$section]" '$1 == s { print $2 }')
	[ "$kind" = .data.rel.ro ] || fail "$name, a table of functions, is in $kind"
done <"$work/odd"

echo "hardened: ok (stack, RELRO, bind now, stack protector, FORTIFY, CET where there is any," \
	"tw_ alone, no environment)"
