/*
 * Driving a service from the user's own loop: the next expiry, the budget, and who may drive. On a
 * clock moved by hand.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#include "test/support/shot.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(driver_loop, .init = open_rig, .fini = close_rig, .timeout = 30);

static uint64_t next_expiry(void)
{
	uint64_t at_ns = 1;
	expect_eq(tw_service_next_expiry(rig.service, &at_ns), 0);
	return at_ns;
}

/* ------------------------------------------------------------ when next, and who may drive */

static const struct script scripts[] = {
    {"never while nothing is pending",
     {{"expiry; timer 0 in=1 plain; cancel 0; expiry", "never, CANCELLED, never"}}},
    {"knows of every call before it",
     {{"timer 0 in=50 plain; expiry; timer 1 at=30 plain; expiry", "next 50, next 30"},
      {"reset 0 by=10; expiry; reset 0 by=20; expiry; cancel 0; expiry",
       "next 10, next 20, CANCELLED, next 30"},
      {"drive 30; expiry", "@30 run 1, never"}}},
    {"now when something is due",
     {{"drive 1000; timer 0 at=0 plain; expiry; poll; expiry",
       "@1000 now, run 0 late=1000, 1, never"}}},
    {"now while a budget has left something",
     {{"timer 0..4 in=1 plain; pass 1; expiry; poll 2; expiry; poll 2; expiry",
       "@1 now, run 0, run 1, 2, now, run 2, run 3, 2, now"},
      {"poll 2; expiry; poll 2", "run 4, 1, never"}}},
    {"never after a budget that fits",
     {{"timer 0 1 in=1 plain; pass 1; poll 2; expiry; poll 2", "@1 run 0, run 1, 2, never"}}},
    {"the next tick for what an executor has refused",
     {{"given queued; timer 0 in=1 plain; refuse -1; pass 5; poll; expiry", "@5 next 6"},
      {"refuse 0; pass 1; poll; expiry; pump", "@6 1, never, run 0 late=5"}}},
    {"now for a callback that comes again at once, and each advance returns",
     {{"timer 0 in=0 plain times=3 {reset 0 by=0}; poll; expiry; poll; poll; poll; expiry",
       "run 0, 1, now, run 0, 1, run 0, 1, run 0, 1, never"},
      {"timer 0 in=0 plain {timer 1 in=0 plain {timer 0 in=0 plain}}; poll; poll; poll; poll",
       "run 0, 1, run 1, 1, run 0, 1"}}},
    {"not for a callback of the service, and not for a closed one",
     {{"timer 0 in=0 plain {poll; expiry}; poll", "run 0, EBUSY, EBUSY, 1"},
      {"close drop; poll; expiry", "ESHUTDOWN, ESHUTDOWN"}}},
};

Test(driver_loop, next_expiry_follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}

/*
 * A loop that knows nothing but next_expiry, over a day: exact, and with few turns that find
 * nothing to do.
 */
Test(driver_loop, next_expiry_alone_drives_every_timer_in_its_tick)
{
	enum { COUNT = 1000 };
	static struct probe probes[COUNT];
	static uint64_t due_ns[COUNT];
	uint64_t seed = 71;
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		due_ns[i] = RIG_START_NS + random_below(&seed, i % 2 ? DAY : 10 * SECOND);
		probe_schedule_at(&probes[i], due_ns[i]);
	}
	uint64_t at_ns;
	int idle_turns = 0;
	while ((at_ns = next_expiry()) != UINT64_MAX) {
		expect_eq(tw_clock_manual_set(rig.clock, at_ns), 0);
		idle_turns += tw_service_advance(rig.service, TW_NO_LIMIT) == 0;
	}
	for (int i = 0; i < COUNT; i++)
		expect_ran_at(&probes[i], rig_tick_of(&rig, due_ns[i]));
	expect_le(idle_turns, 8 * 2 *
				  /*
		       * G9: 8 for each coarse bucket, of which there is one a timer on each level
		       * at most
		       */
				  COUNT);
}

/* ------------------------------------------------------------ a clock that is set back */

static void count_nothing(void *arg)
{
	(void)arg;
}

/*
 * The instant of a due timer is that of the last advance. If the clock is set back, it is the
 * service's time, which goes back within the tick that the driver has reached, and no further.
 */
Test(driver_loop, next_expiry_of_what_is_due_is_not_later_than_now_or_the_last_advance)
{
	static const uint64_t tenth = MS / 10;
	static const struct {
		uint64_t advanced, then, wanted; /* since the start, in tenths of a ms */
	} rows[] = {{59, 51, 51}, {59, 0, 50}, {50, 90, 50}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		reopen_rig(NULL);
		rig_advance(&rig, rows[i].advanced * tenth);
		expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + rows[i].then * tenth), 0);
		expect_eq(
		    tw_schedule_at(rig.service, RIG_START_NS + 4 * MS, count_nothing, NULL, NULL),
		    0);
		expect_eq(next_expiry(), RIG_START_NS + rows[i].wanted * tenth);
		expect_le(next_expiry(), tw_service_now(rig.service));
		expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1);
		expect_eq(next_expiry(), UINT64_MAX);
	}
}

/* ------------------------------------------------------------ it returns */

static void rearm_at_once(struct probe *probe)
{
	probe->answer |= tw_reset(probe->rig->service, tw_self(), 0);
}

static void schedule_at_once(struct probe *probe)
{
	probe->answer |= tw_schedule(probe->rig->service, 0, probe_run, probe, &probe->timer);
}

/* One run in each tick: the first where the clock stands. */
static void expect_clock_returns(void (*act)(struct probe *), uint64_t off_ns)
{
	reopen_rig(NULL);
	rig_advance(&rig, off_ns);
	struct probe probe = PROBE(&rig, 1);
	probe.act = act;
	probe_schedule_at(&probe, 0);
	rig_advance(&rig, 0);
	expect_ran_at(&probe, RIG_START_NS + off_ns);
	rig_advance(&rig, 20 * MS - off_ns);
	uint64_t at_ns = RIG_START_NS + off_ns;
	for (size_t i = 1; i < rig.ran; i++) {
		expect_le(rig.events[i].at_ns, at_ns + MS);
		at_ns = rig.events[i].at_ns;
	}
	expect_eq(at_ns, RIG_START_NS + 20 * MS);
	expect_le(rig.ran, 22); /* two calls, twenty ticks */
	expect_eq(probe.answer, 0);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
}

Test(driver_loop, a_clocks_advance_returns_though_a_callback_comes_again_at_once)
{
	expect_clock_returns(rearm_at_once, 0);
	expect_clock_returns(rearm_at_once, MS / 3);
	expect_clock_returns(schedule_at_once, 0);
	expect_clock_returns(schedule_at_once, MS / 3);
}

/* Work for a service whose turn of this tick is over comes in its next one, within the advance. */
static void schedule_on_the_other(struct probe *probe)
{
	struct probe *other = probe->other;
	probe->answer |= tw_schedule(other->rig->service, 0, probe_run, other, NULL);
}

static void schedule_later_on_the_other(struct probe *probe)
{
	struct probe *other = probe->other;
	probe->answer |= tw_schedule(other->rig->service, 5 * MS, probe_run, other, NULL);
}

/* Before it on the clock, or after it. */
Test(driver_loop, services_on_one_clock_bring_each_other_work_in_its_time)
{
	struct tw_service_config cfg = rig_config();
	cfg.clock = rig.clock;
	struct rig second = {.clock = rig.clock, .lock = PTHREAD_MUTEX_INITIALIZER};
	expect_eq(tw_service_create(&second.service, &cfg), 0);
	struct probe ping = PROBE(&rig, 1), pong = PROBE(&second, 2);
	ping.act = pong.act = schedule_on_the_other;
	ping.other = &pong;
	pong.other = &ping;
	probe_schedule(&ping, 0);
	rig_advance(&rig, 100 * MS);
	expect_eq(ping.answer | pong.answer, 0);
	expect_ge(ping.runs + pong.runs, 100);
	expect_le(ping.runs + pong.runs, 2 * 102);
	ping.act = pong.act = NULL;
	rig_advance(&rig, MS);
	for (int i = 0; i < 2; i++) {
		struct probe *from = i ? &pong : &ping, *to = from->other;
		uint64_t now_ns = rig_now(&rig);
		from->act = schedule_later_on_the_other;
		probe_schedule(from, 10 * MS);
		rig_advance(&rig, 100 * MS);
		expect_eq(to->ran_at_ns, now_ns + 15 * MS);
		from->act = NULL;
	}
	expect_eq(tw_service_destroy(second.service), 0);
	free(second.events);
}

/*
 * The clock notifies a tick thread after the services that are driven by hand, because they may
 * bring it work.
 */
Test(driver_loop, work_for_a_tick_thread_is_handed_over_in_the_same_advance)
{
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .executor = tw_executor_inline(), .clock = rig.clock};
	struct rig second = {.clock = rig.clock, .lock = PTHREAD_MUTEX_INITIALIZER};
	expect_eq(tw_service_create(&second.service, &cfg), 0);
	for (int i = 0; i < 50; i++) {
		struct probe ping = PROBE(&rig, 1), pong = PROBE(&second, 2);
		ping.act = schedule_on_the_other;
		ping.other = &pong;
		probe_schedule(&ping, 3 * MS);
		rig_advance(&rig, 3 * MS);
		expect_eq(pong.runs, 1);
	}
	expect_eq(tw_service_destroy(second.service), 0);
	free(second.events);
}

/* ------------------------------------------------------------ who may */

static void hold_the_driver(void *arg)
{
	sem_t *semaphores = arg;
	sem_post(&semaphores[0]);
	await(&semaphores[1], 1);
}

static void *drive_once(void *service)
{
	return (void *)(intptr_t)tw_service_advance(service, TW_NO_LIMIT);
}

Test(driver_loop, one_thread_drives_at_a_time)
{
	sem_t semaphores[2];
	sem_init(&semaphores[0], 0, 0);
	sem_init(&semaphores[1], 0, 0);
	expect_eq(tw_schedule(rig.service, 0, hold_the_driver, semaphores, NULL), 0);
	pthread_t other;
	expect_eq(pthread_create(&other, NULL, drive_once, rig.service), 0);
	await(&semaphores[0], 1);
	uint64_t at_ns = 1;
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), -EBUSY);
	expect_eq(tw_service_next_expiry(rig.service, &at_ns), -EBUSY);
	expect_eq(at_ns, 1);
	sem_post(&semaphores[1]);
	void *ran;
	pthread_join(other, &ran);
	expect_eq((intptr_t)ran, 1);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 0);
}
