#!/bin/sh
# comments.sh: the manual's generator refuses a comment of a header that would leave a sentence empty or without its
# beginning. Each planted comment must be refused with its text, and the headers must not be.
. "$(dirname "$0")/../support/script.sh"

parsed() { awk -f man/text.awk -f man/model.awk -f man/parse.awk -f man/answers.awk "$@"; }

# $1: what the complaint says; standard input: a declaration with its comment.
refused() {
	{ printf '/* A header: planted. */\n\n'; cat; } >"$work/planted.h"
	if parsed "$work/planted.h" >"$work/out" 2>&1 || ! grep -qF -- "$1" "$work/out"; then
		echo "comments: not refused, or without \"$1\":" >&2
		sed 's/^/  /' "$work/planted.h" "$work/out" >&2
		exit 1
	fi
}

# $1: lines of a comment, $2: a declaration.
plant() { printf '/*\n'; printf '%b' "$1" | sed 's/^/ * /; s/ *$//'; printf ' */\n%s\n' "$2"; }

good='Does it.\n\nThreads: any.\nReturns:\n  0         done\n  -EINVAL   x is NULL\n'
plant "$good" 'TW_API int tw_x(int *x);' >"$work/good"
{ printf '/* A header: planted. */\n\n'; cat "$work/good"; } >"$work/good.h"
[ "$(parsed "$work/good.h" | tr '\n' ' ')" = "tw_x 0 tw_x -EINVAL " ] ||
	fail "a good comment is refused"

plant 'Threads: any.\nReturns:\n  0   done\n' 'TW_API int tw_x(void);' | refused 'tw_x has no text'
plant 'Does it.\n\nThreads: any.\n' 'TW_API int tw_x(void);' | refused 'no "Returns:"'
plant 'Does it.\n\nThreads: any.\nReturns:\n  0\n' 'TW_API int tw_x(void);' | refused '"0" has no text'
plant 'Does it.\n\nThreads: any.\nReturns: 0; -EINVAL if x is NULL\n' 'TW_API int tw_x(int *x);' |
	refused '"0" has no text'
plant 'Does it.\n\nThreads: any.\nReturns:\n  any other errno\n' 'TW_API int tw_x(void);' |
	refused '"any other errno" has no text'
{
	cat "$work/good"
	plant 'More.\n\nThreads: any.\nReturns: as tw_x, for the first one. Grows by n.\n' 'TW_API int tw_y(int *y);'
} | refused 'tw_y: a sentence after its answers has no beginning'
{
	cat "$work/good"
	plant 'More.\n\nThreads: any.\nReturns: the same as tw_x.\n' 'TW_API int tw_y(int *y);'
} | refused 'tw_y: Returns: says something before "as"'
plant 'Does it.\n\nThreads: any.\nReturns: as tw_y.\n' 'TW_API int tw_x(int *x);' | refused 'not declared'
printf 'struct tw_s {\n\tint member;\n};\n' | refused 'tw_s has no text'
printf 'enum tw_e {\n\tTW_E = 1\n};\n' | refused 'tw_e has no text'
printf 'typedef int tw_f(void *arg);\n' | refused 'tw_f has no text'

parsed include/tickwheel.h include/tickwheel/*.h >/dev/null
echo "comments: ok ($(grep -c "refused '.*'$" test/contract/comments.sh) planted ones are refused)"
