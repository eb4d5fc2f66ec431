/*
 * W5: what it costs to have timers and do nothing: an empty service, 100k timers an hour out, and
 * 100 requests a second whose timeout of 1 s is cancelled by the next one's arrival, 10 ms later.
 *
 * Wake-ups are what the candidate counts itself; for bare ones, the turns that they ask the loop
 * for. So that nobody has to be believed, the sleeps of all threads but the caller's are counted by
 * the kernel, too.
 */
#include "bench/measure.h"
#include "bench/recorder.h"
#include "bench/workload.h"

enum { EMPTY = 0, TRICKLE = 1, REQUESTS_PER_S = 100 };

#define HOUR_NS (3600 * SECOND_NS)

struct tally {
	uint64_t turns, requests, cancelled;
};

static void request(const struct order *order, void *self, struct tally *tally,
		    struct outcome *outcome)
{
	uint64_t now = now_ns();
	if (order->candidate->turn)
		order->candidate->turn(self, 0, now);
	if (tally->requests++ > 0 && !order->candidate->cancel(self, 0))
		outcome_violation(outcome, "a pending timer could not be cancelled");
	if (order->candidate->schedule(self, 0, 0, SECOND_NS, record_deadline,
				       (void *)(uintptr_t)(now + SECOND_NS)))
		outcome_fail(outcome, "schedule refused");
}

static void idle_until(const struct order *order, void *self, uint64_t end, struct tally *tally,
		       struct outcome *outcome)
{
	if (order->n != TRICKLE) {
		tally->turns += drive_until(order->candidate, self, end);
		return;
	}
	for (uint64_t next = now_ns(); next < end; next += SECOND_NS / REQUESTS_PER_S) {
		tally->turns += drive_until(order->candidate, self, next);
		request(order, self, tally, outcome);
	}
}

static void run(const struct order *order, struct outcome *outcome)
{
	struct candidate_view before, after;
	struct tally tally = {0};
	uint64_t duration = (order->quick ? 1200 : 5000) * MILLISECOND_NS;
	uint64_t settle = (order->quick ? 700 : 1500) * MILLISECOND_NS;
	void *self = make_candidate(order, order->n > 0 ? order->n : 1, outcome);
	if (order->n != TRICKLE)
		fill_slots(order, self, HOUR_NS, HOUR_NS + 60 * SECOND_NS, outcome);
	idle_until(order, self, now_ns() + settle, &tally, outcome);
	order->candidate->view(self, &before);
	uint64_t turns = tally.turns, sleeps = other_threads_sleeps(), start = now_ns(),
		 cpu = process_cpu_ns();
	idle_until(order, self, start + duration, &tally, outcome);
	cpu = process_cpu_ns() - cpu;
	double seconds = (double)(now_ns() - start) / 1e9;
	sleeps = other_threads_sleeps() - sleeps;
	order->candidate->view(self, &after);
	turns = order->candidate->bare ? tally.turns - turns : after.wakeups - before.wakeups;
	outcome_set(outcome, "cpu_ms", (double)cpu / 1e6);
	outcome_set(outcome, "wakeups_per_s", (double)turns / seconds);
	outcome_set(outcome, "thread_sleeps_per_s", (double)sleeps / seconds);
	if (recorded_fired())
		outcome_violation(outcome, "%llu timers ran that were cancelled or not due",
				  (unsigned long long)recorded_fired());
	if (after.pending != order->n)
		outcome_violation(outcome, "%llu timers pending instead of %u",
				  (unsigned long long)after.pending, order->n);
	order->candidate->destroy(self);
}

const struct workload workload_idle = {
    .name = "W5",
    .bit = ON_IDLE,
    .run = run,
};
