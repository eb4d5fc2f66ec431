/* Assertions about a whole service. */
#include "expect.h"

#include <stdio.h>
#include <stdlib.h>

static bool in_fini;

void expect_in_fini(void)
{
	in_fini = true;
}

void expect_holds(bool holds, const char *what)
{
	if (holds || !in_fini)
		return;
	fprintf(stderr, "at the end of the test, this does not hold: %s\n", what);
	abort();
}

struct tw_service_stats stats_of(tw_service *service)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	expect_eq(tw_service_stats(service, &stats), 0);
	return stats;
}

void expect_sound(tw_service *service)
{
	char why[256] = "";
	int answer = tw_service_validate(service, why, sizeof(why));
	expect_holds(answer == 0, why);
	cr_assert(answer == 0, "tw_service_validate answers %d: %s", answer, why);
	struct tw_service_stats s = stats_of(service);
	expect_eq(s.scheduled, s.fired + s.cancelled + s.dropped + s.pending + s.disarmed);
}

void expect_same_state(const struct tw_service_stats *before, const struct tw_service_stats *after)
{
	expect_eq(after->scheduled, before->scheduled);
	expect_eq(after->fired, before->fired);
	expect_eq(after->cancelled, before->cancelled);
	expect_eq(after->dropped, before->dropped);
	expect_eq(after->pending, before->pending);
	expect_eq(after->runs, before->runs);
	expect_eq(after->overruns, before->overruns);
	expect_eq(after->resets, before->resets);
	expect_eq(after->resets_eager, before->resets_eager);
	expect_eq(after->refused, before->refused);
	expect_eq(after->entries, before->entries);
	expect_eq(after->clock_steps, before->clock_steps);
}

void expect_untouched(const struct tw_service_stats *before, tw_service *service)
{
	struct tw_service_stats after = stats_of(service);
	expect_same_state(before, &after);
	expect_eq(after.rejected, before->rejected);
}
