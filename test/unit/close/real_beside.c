/*
 * Closes beside callbacks that do not return, and beside each other: each answers in time, and
 * truly, and the lowest mode holds. On the real clock.
 */
#include <errno.h>
#include <sched.h>

#include "wheel/core/service.h"
#include "test/support/closing.h"
#include "test/support/gates.h"
#include "test/support/timer_script.h"

TestSuite(close_real_beside, .timeout = 60);

/* Closes in each mode with and without a timeout, until nothing is pending. */
static void no_end(const struct words *words)
{
	tw_service *service = timer_stage.rig->service;
	do /* what is pending may have to wait until the tick thread gets a processor */
		for (int mode = TW_CLOSE_DRAIN; mode >= TW_CLOSE_DROP; mode--) {
			enum tw_close_mode asked = (enum tw_close_mode)mode;
			expect_eq(tw_service_close(service, asked, 20 * MS), -ETIMEDOUT);
			expect_eq(tw_service_close(service, asked, 0), -ETIMEDOUT);
		}
	while (stats_of(service).pending);
}

/*
 * Nothing but the service's threads can hold up this close. They have a second beyond its timeout:
 * one that had no processor for longer is waited for again.
 */
static void ends(const struct words *words)
{
	tw_service *service = timer_stage.rig->service;
	enum tw_close_mode mode = has_word(words, "drain") ? TW_CLOSE_DRAIN : TW_CLOSE_DROP;
	uint64_t timeout_ns = ms_of(words, "within"), begun_ns;
	int r;
	do {
		begun_ns = tw_service_now(service);
		r = tw_service_close(service, mode, timeout_ns ? timeout_ns : TW_FOREVER);
	} while (r == -ETIMEDOUT && tw_service_now(service) - begun_ns >= timeout_ns + SECOND);
	say_answer(r);
}

/* Drops again and again, since the driver may have no processor; until there is nothing left. */
static void drop_all(const struct words *words)
{
	tw_service *service = timer_stage.rig->service;
	while (tw_service_close(service, TW_CLOSE_DROP, 10 * MS) == -ETIMEDOUT &&
	       stats_of(service).pending)
		;
}

static void until_closing(const struct words *words)
{
	while (tw_load_acquire(&timer_stage.rig->service->phase.closing) == 0)
		sched_yield();
}

static const struct verb verbs[] = {{"no_end", no_end},
				    {"ends", ends},
				    {"drop_all", drop_all},
				    {"until_closing", until_closing},
				    {NULL, NULL}};

static const struct script blocked[] = {
    {"a callback in the pool holds up no close",
     {{"given real workers=2; timer 0 in=0 {stand 0}; begun 0; timer 1 in=3600000 plain", "run 0"},
      {"no_end; stats pending dropped fired", "pending=0, dropped=1, fired=0"},
      {"let 0; close drop; stats runs", "0 fired, runs=1"}}},
    {"nor does one on the tick thread",
     {{"given real; timer 0 in=0 plain {stand 0}; begun 0; no_end; timer 1 in=0 plain", "run 0"},
      {"let 0; close drop; stats runs dropped", "runs=1, dropped=1"}}},
    {"nor one on a thread that drives",
     {{"given real by_hand; timer 0 at=-1000000 plain {stand 0}; beside 1 {poll}; begun 0; no_end",
       "run 0"},
      {"timer 1 at=-1000000 plain; let 0; joined 1; poll", "1"},
      {"close drop; stats runs dropped", "runs=1, dropped=1"}}},
    /* a pending timer, and one whose run waits in a queue */
    {"a drop leaves nothing to the tick thread",
     {{"given real; timer 1 in=0 plain other; queued 1; timer 2 in=3600000 plain; hold", ""},
      {"timer 0 in=0 plain {stand 0}; begun 0; close drop 20; left 1 2; stats dropped",
       "run 0, ETIMEDOUT, ENOENT, ENOENT, dropped=2"},
      {"let 0; close drop; stats runs", "runs=1"}}},
    {"nor does a run",
     {{"given real; timer 1 in=0 plain other; queued 1; timer 2 in=3600000 plain; hold", ""},
      {"timer 0 in=0 plain {stand 0}; begun 0; close run 20; left 1 2; stats dropped",
       "run 0, ETIMEDOUT, ENOENT, ENOENT, dropped=2"},
      {"let 0; close drop; stats runs", "runs=1"}}},
    {"nor does a drain",
     {{"given real; timer 1 in=0 plain other; queued 1; timer 2 in=3600000 plain; hold", ""},
      {"timer 0 in=0 plain {stand 0}; begun 0; close drain 20; left 1 2; stats dropped",
       "run 0, ETIMEDOUT, ENOENT, ENOENT, dropped=2"},
      {"let 0; close drop; stats runs", "runs=1"}}},
    {"a run that has timed out is a drop",
     {{"given real workers=1; timer 0 in=0 plain {stand 0}; begun 0", "run 0"},
      {"timer 1..40 in=3600000 plain; close run 50; stats pending dropped",
       "ETIMEDOUT, pending=0, dropped=40"},
      {"let 0; close drop; stats runs", "runs=1"}}},
    /* the gate is open still: the tick thread could not close it */
    {"a drain whose time is up drops what another close would run",
     {{"given real; timer 1 in=3600000 plain; timer 0 in=0 plain {stand 0}; begun 0", "run 0"},
      {"beside 1 {close run}; until_closing; close drain 20; stats pending; timer 2 in=0 plain",
       "ETIMEDOUT, pending=0"},
      {"let 0; joined 1; stats runs dropped", "runs=1, dropped=2"}}},
    /* it sees the gate open: its release follows all the same */
    {"a callback that is left does not arm its timer again",
     {{"given real; timer 0 in=0 {reset 0 by=0; stand 0}; begun 0; close drop 0",
       "run 0, ETIMEDOUT"},
      {"let 0; over 0; stats runs", "0 fired, runs=1"}}},
    {"nor does a series go on",
     {{"given real; timer 0 every=1 {stand 0}; begun 0; close drop 0", "run 0, ETIMEDOUT"},
      {"let 0; over 0; stats runs", "0 fired, runs=1"}}},
    {"nor a persistent timer",
     {{"given real; timer 0 in=0 persistent {reset 0 by=0; stand 0}; begun 0; close drop 0",
       "run 0, ETIMEDOUT"},
      {"let 0; over 0; stats runs", "0 fired, runs=1"}}},
};

Test(close_real_beside, callbacks_that_do_not_return)
{
	PLAY(&timer_stage, verbs, blocked);
}

/* A close under way, another one beside it, and whether the timers, an hour away, run. */
static const struct script closes[] = {
    {"a drop ends a drain",
     {{"given real workers=1; timer 0..63 in=3600000 plain; beside 0 {close drain}", ""},
      {"until_closed; close drop; joined 0; stats runs dropped", "runs=0, dropped=64"}}},
    {"a drop that did not wait holds",
     {{"given real workers=1; timer 0..63 in=3600000 plain; beside 0 {close drain}", ""},
      {"until_closed; drop_all; joined 0; stats runs dropped", "runs=0, dropped=64"}}},
    {"a run beside a drain lets all run",
     {{"given real workers=1; timer 0 in=3600000 plain; beside 0 {close drain}", ""},
      {"until_closed; close run; joined 0; stats runs dropped",
       "run 0 closing, runs=1, dropped=0"}}},
    {"of two drains each ends at its own timeout",
     {{"given real workers=1; timer 0..63 in=3600000 plain; beside 0 {ends drain}", ""},
      {"until_closed; ends drain within=20; joined 0; stats runs dropped", "runs=0, dropped=64"}}},
    {"of two drains the first may be the one with a timeout",
     {{"given real workers=1; timer 0..63 in=3600000 plain; beside 0 {ends drain within=200}", ""},
      {"until_closed; ends drain; joined 0; stats runs dropped", "runs=0, dropped=64"}}},
    {"a drop ends a run",
     {{"given real workers=1; timer 0 in=0 plain {stand 0}; begun 0; timer 1..40 in=3600000 plain",
       "run 0"},
      {"beside 1 {close run}; until_closed; drop_all; close drop 1; stats dropped",
       "ETIMEDOUT, dropped=40"},
      {"let 0; joined 1; stats runs", "runs=1"}}},
    {"a close keeps its mode: a later close with a higher mode joins it",
     {{"given real workers=1; timer 0 in=0 plain {stand 0}; begun 0; timer 1 in=3600000 plain",
       "run 0"},
      {"beside 1 {close run}; until_closed; beside 2 {close drain}; let 0; joined 2 1",
       "run 1 closing"}}},
};

Test(close_real_beside, other_closes)
{
	PLAY(&timer_stage, verbs, closes);
}

/* ------------------------------------------------------------ 0 means: the threads have ended */

static pthread_key_t key;
static atomic_int ended;

static void end_slowly(void *value)
{
	sem_post(&entered);
	await(&go_on, 1);
	atomic_fetch_add(&ended, 1);
}

static void set_key(void *arg)
{
	pthread_setspecific(key, arg);
	count(arg);
}

/* The worker lingers in an exit handler of its own: no close may say that all is over. */
Test(close_real_beside, none_answers_0_while_another_still_joins_the_pool)
{
	open_gates();
	tw_service *service = open_service(1);
	struct closing first, second;
	atomic_int runs = 0;
	expect_eq(pthread_key_create(&key, end_slowly), 0);
	expect_eq(tw_schedule(service, 0, set_key, &runs, NULL), 0);
	closing_start(&first, service, TW_CLOSE_DRAIN, TW_FOREVER);
	await(&entered, 1);
	closing_start(&second, service, TW_CLOSE_DROP, 20 * MS);
	expect_eq(closing_end(&second), -ETIMEDOUT);
	closing_start(&second, service, TW_CLOSE_DROP, TW_FOREVER);
	sem_post(&go_on);
	expect_eq(closing_end(&second), 0);
	expect_eq(ended, 1);
	expect_eq(closing_end(&first), 0);
	close_service(service);
}

/* Runs given back while a drain goes on come again, and the drain waits for them. */
Test(close_real_beside, hand_over_again_what_is_given_back_in_a_drain)
{
	struct queue_executor queue;
	queue_executor_open(&queue);
	for (int threaded = 0; threaded <= 1; threaded++) {
		tw_service *service;
		struct closing drain;
		atomic_int runs = 0;
		struct tw_service_config cfg = {.size = sizeof(cfg), .executor = &queue.base};
		cfg.drive = threaded ? TW_DRIVE_THREAD : TW_DRIVE_MANUAL;
		expect_eq(tw_service_create(&service, &cfg), 0);
		for (int i = 0; i < 30; i++)
			expect_eq(tw_schedule(service, (uint64_t)i * MS, count, &runs, NULL), 0);
		closing_start(&drain, service, TW_CLOSE_DRAIN, TW_FOREVER);
		for (int given_back = 0; given_back < 100;)
			given_back += queue_executor_drop_next(&queue) == 0;
		expect_eq(runs, 0);
		while (runs < 30)
			queue_executor_run_all(&queue);
		expect_eq(closing_end(&drain), 0);
		expect_eq(stats_of(service).dropped, 0);
		close_service(service);
	}
	queue_executor_close(&queue);
}
