#!/bin/bash
# amalgamation.sh DIR LINKED...: DIR has the core as one file. gcc and clang compile it without a warning, C and
# C++ programs use it, and the unit tests pass on it: LINKED are their objects and options, and the layers. Prints its
# lines and the bytes of its object.
. "$(dirname "$0")/../support/script.sh"
set -o pipefail

dir=$1
shift
flags=(-std=c11 -O2 -Wall -Wextra -Werror -pthread)

for compiler in gcc clang; do
	command -v "$compiler" >/dev/null || { echo "amalgamation: $compiler is missing" >&2; exit 2; }
	"$compiler" "${flags[@]}" -I"$dir" -c -o "$dir/tickwheel.$compiler.o" "$dir/tickwheel.c"
done

cat >"$dir/caller.c" <<'CALLER'
#include "tickwheel.h"

static void on_timeout(void *arg)
{
	*(int *)arg = 1;
}

int main(void)
{
	static int fired;
	tw_service *service;
	if (tw_service_create(&service, NULL) != 0)
		return 1;
	if (tw_schedule(service, TW_MILLISECOND, on_timeout, &fired, NULL) != 0)
		return 1;
	int r = tw_service_close(service, TW_CLOSE_DRAIN, 10 * TW_SECOND);
	return tw_service_destroy(service) != 0 || r != 0 || !fired;
}
CALLER
for compiler in gcc clang; do
	"$compiler" "${flags[@]}" -I"$dir" -o "$dir/caller" "$dir/caller.c" "$dir/tickwheel.$compiler.o"
	"$dir/caller"
	"$compiler" -x c++ -std=c++17 -Wall -Wextra -Werror -I"$dir" -c -o "$dir/caller.o" "$dir/caller.c"
	"$compiler" -pthread -o "$dir/caller" "$dir/caller.o" "$dir/tickwheel.$compiler.o"
	"$dir/caller"
done

gcc -pthread -o "$dir/run" "$@" "$dir/tickwheel.gcc.o" -lcriterion -lm
"$dir/run" --jobs 2 | tail -n 1
echo "amalgamation: ok (tickwheel.c has $(wc -l <"$dir/tickwheel.c") lines, its object" \
	"$(size "$dir/tickwheel.gcc.o" | awk 'NR == 2 { print $1 + $2 + $3 }') bytes)"
