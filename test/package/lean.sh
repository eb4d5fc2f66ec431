#!/bin/sh
# lean.sh STATIC LIBRARY...: who uses seven functions links no more than these need. A program that schedules and
# cancels has no text for people, no table of what runs, and nothing of the layers above; stripped, and without
# what nobody calls, it has at most so many bytes.
. "$(dirname "$0")/../support/script.sh"
most=125000 # with probes, whose notes keep each function that has one; without them 118,000

[ $# -ge 1 ] || { echo "usage: lean.sh STATIC LIBRARY..." >&2; exit 2; }
static=$1
shift

cat >"$work/program.c" <<'END'
#include <tickwheel.h>

static void run(void *arg)
{
	(void)arg;
}

int main(void)
{
	tw_service *service;
	tw_timer timer;
	if (tw_service_create(&service, 0) || tw_schedule(service, TW_SECOND, run, 0, &timer) ||
	    tw_reset(service, timer, TW_SECOND) || tw_cancel(service, timer) ||
	    tw_cancel_wait(service, timer, 0) != TW_GONE ||
	    tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER))
		return 1;
	return tw_service_destroy(service);
}
END
"${CC:-cc}" -O2 -Iinclude -Wl,--gc-sections -Wl,-Map="$work/map" -o "$work/program" "$work/program.c" "$static" "$@" \
	-pthread
"$work/program" || fail "the program fails"
strip "$work/program"

sed -n '/^Archive member included/,/^\(Discarded\|Merging\|Memory\)/s/.*libtickwheel\.a(\(.*\)\.o).*/\1/p' "$work/map" |
	sort -u >"$work/members"
! grep -xE 'stats|inspect|liveness|clock_manual|text|strand|semaphore|limiter|scheduler|action|sim|prometheus|manual' \
	"$work/members" >"$work/odd" || { echo "lean: it links $(tr '\n' ' ' <"$work/odd")" >&2; exit 1; }
bytes=$(stat -c %s "$work/program")
[ "$bytes" -le "$most" ] || fail "$bytes bytes, stripped; at most $most"
echo "lean: ok ($bytes bytes, $(wc -l <"$work/members") members)"
