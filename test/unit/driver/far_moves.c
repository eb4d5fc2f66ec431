/*
 * Threads that move timers to near and far deadlines while the driver turns (wheel/slot/word.h,
 * WORD6): when they have finished, each timer runs in the tick that it says.
 */
#include <stdatomic.h>

#include "test/support/random.h"
#include "test/support/rig.h"

TestSuite(driver_far_moves, .timeout = 60);

enum { TIMERS = 16, THREADS = 3, MOVES = 20000 };

static struct {
	struct rig rig;
	struct probe probes[TIMERS];
	atomic_int at_work, failed;
} far;

/* Near, just beyond the range, or far, so that words and far deadlines change into one another. */
static uint64_t any_deadline(uint64_t *seed)
{
	static const uint64_t from_ns[] = {HOUR, 9 * HOUR, 10 * HOUR, 400 * DAY};
	return RIG_START_NS + from_ns[random_below(seed, 4)] + random_below(seed, HOUR);
}

static void *move_about(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;
	for (int i = 0; i < MOVES; i++) {
		const struct probe *probe = &far.probes[random_below(&seed, TIMERS)];
		uint64_t deadline_ns = any_deadline(&seed);
		int r = i % 4 ? tw_reset_at(far.rig.service, probe->timer, deadline_ns)
			      : tw_reset_earlier_at(far.rig.service, probe->timer, deadline_ns);
		if (r != 0 && r != TW_RESET_KEPT)
			atomic_fetch_add(&far.failed, 1);
	}
	atomic_fetch_sub(&far.at_work, 1);
	return NULL;
}

static void turn_meanwhile(void)
{
	for (int turns = 0; atomic_load(&far.at_work) > 0; turns++) {
		uint64_t unused, step_ns = turns < 50000 ? MS : 0;
		tw_clock_manual_set(far.rig.clock, rig_now(&far.rig) + step_ns);
		tw_service_advance(far.rig.service, TW_NO_LIMIT);
		tw_service_next_expiry(far.rig.service, &unused);
	}
}

Test(driver_far_moves, end_with_each_timer_in_the_tick_that_it_says)
{
	pthread_t threads[THREADS];
	rig_open(&far.rig, NULL);
	for (int i = 0; i < TIMERS; i++) {
		far.probes[i] = PROBE(&far.rig, i);
		probe_schedule(&far.probes[i], i % 2 ? DAY : HOUR);
	}
	atomic_store(&far.at_work, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		expect_eq(pthread_create(&threads[i], NULL, move_about, (void *)i), 0);
	turn_meanwhile();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	expect_eq(atomic_load(&far.failed), 0);
	expect_eq(far.rig.ran, 0);
	uint64_t due_ns[TIMERS], left_ns;
	for (int i = 0; i < TIMERS; i++) {
		expect_eq(tw_remaining(far.rig.service, far.probes[i].timer, &left_ns), 0);
		due_ns[i] = rig_now(&far.rig) + left_ns;
	}
	rig_advance_to(&far.rig, RIG_START_NS + 401 * DAY);
	for (int i = 0; i < TIMERS; i++)
		expect_ran_at(&far.probes[i], due_ns[i]);
	rig_close(&far.rig);
}
