/*
 * At the first look a few callbacks may have begun that have not been counted: between two counts
 * the truth must lie.
 */
#include "bench/ledger.h"
#include "bench/measure.h"
#include "bench/recorder.h"

struct look {
	uint64_t fired_before, pending, fired_after;
};

static struct look look(const struct candidate *candidate, void *self)
{
	struct candidate_view view;
	struct look look = {.fired_before = recorded_fired()};
	candidate->view(self, &view);
	look.pending = view.pending;
	look.fired_after = recorded_fired();
	return look;
}

void check_ledger(const struct candidate *candidate, void *self, uint64_t scheduled,
		  uint64_t cancelled, struct outcome *outcome)
{
	const uint64_t patience_ns = UINT64_C(5000000000), pause_ns = 2 * TICK_NS;
	uint64_t end = now_ns() + patience_ns;
	struct look seen;
	do {
		drive_until(candidate, self, now_ns() + pause_ns);
		seen = look(candidate, self);
		uint64_t fired = scheduled - cancelled - seen.pending;
		if (seen.fired_before <= fired && fired <= seen.fired_after)
			return;
	} while (now_ns() < end);
	outcome_violation(
	    outcome, "ledger: scheduled %llu, cancelled %llu, fired %llu .. %llu, pending %llu",
	    (unsigned long long)scheduled, (unsigned long long)cancelled,
	    (unsigned long long)seen.fired_before, (unsigned long long)seen.fired_after,
	    (unsigned long long)seen.pending);
}
