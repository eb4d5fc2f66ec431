/* Closing with options: a visitor of what is dropped, and not waiting for what runs. */
#include <errno.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/queue_executor.h"
#include "test/support/shot.h"

TestSuite(close_with, .timeout = 30);

enum { TOLD_MAX = 64 };

/* What a visitor saw, in order. */
struct told {
	tw_service *service;
	size_t count;
	struct {
		tw_timer timer, self;
		tw_fn *fn;
		struct probe *probe;
		uint64_t remaining_ns;
		int releases; /* so far */
	} of[TOLD_MAX];
	void (*act)(struct told *told, tw_timer timer);
	bool fine; /* says act */
};

static int note_dropped(void *arg, tw_timer timer, tw_fn *fn, void *timer_arg,
			uint64_t remaining_ns)
{
	struct told *told = arg;
	size_t i = told->count++;
	if (i >= TOLD_MAX)
		return 0;
	told->of[i].timer = timer;
	told->of[i].self = tw_self();
	told->of[i].fn = fn;
	told->of[i].probe = timer_arg;
	told->of[i].remaining_ns = remaining_ns;
	told->of[i].releases = told->of[i].probe ? told->of[i].probe->releases : 0;
	if (told->act)
		told->act(told, timer);
	return 0;
}

static struct tw_close_options telling(struct told *told, enum tw_close_mode mode)
{
	return (struct tw_close_options){.size = sizeof(struct tw_close_options),
					 .mode = mode,
					 .timeout_ns = TW_FOREVER,
					 .dropped = note_dropped,
					 .visitor_arg = told};
}

static const struct tw_close_options no_wait = {
    .size = sizeof(no_wait), .flags = TW_CLOSE_FLAG_NO_WAIT, .timeout_ns = TW_FOREVER};

/* ------------------------------------------------------------ the visitor */

static int stop_at_the_second(void *arg, tw_timer timer, tw_fn *fn, void *timer_arg,
			      uint64_t remaining_ns)
{
	(void)timer, (void)fn, (void)timer_arg, (void)remaining_ns;
	return ++*(int *)arg == 2;
}

Test(close_with, a_visitor_that_returns_non_zero_is_not_called_again)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probes[4];
	int visits = 0;
	for (int i = 0; i < 4; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule_released(&probes[i], SECOND);
	}
	struct tw_close_options options = {.size = sizeof(options),
					   .mode = TW_CLOSE_DROP,
					   .timeout_ns = TW_FOREVER,
					   .dropped = stop_at_the_second,
					   .visitor_arg = &visits};
	expect_eq(tw_service_close_with(rig.service, &options), 0);
	expect_eq(visits, 2);
	for (int i = 0; i < 4; i++)
		expect_eq(probes[i].releases, 1);
	rig_close(&rig);
}

Test(close_with, a_visitor_is_told_of_each_timer_that_is_dropped_before_its_release)
{
	static const uint64_t delays_ns[] = {0, MS, 3 * SECOND, HOUR, 100 * DAY, 4000 * DAY};
	enum { COUNT = sizeof(delays_ns) / sizeof(delays_ns[0]) };
	struct rig rig;
	rig_open(&rig, NULL);
	struct told told = {.service = rig.service};
	struct probe probes[COUNT], cancelled = PROBE(&rig, 90), fired = PROBE(&rig, 91);
	probe_schedule(&fired, 0);
	rig_advance(&rig, MS);
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		if (i % 2)
			probe_schedule(&probes[i], delays_ns[i]);
		else
			probe_schedule_released(&probes[i], delays_ns[i]);
	}
	probe_schedule_released(&cancelled, SECOND);
	expect_eq(tw_cancel(rig.service, cancelled.timer), TW_CANCELLED);
	rig_advance(&rig, 0); /* far ones are filed: their remaining time is exact */
	struct tw_close_options options = telling(&told, TW_CLOSE_DROP);
	expect_eq(tw_service_close_with(rig.service, &options), 0);
	expect_eq(told.count, COUNT - 1); /* the first was due immediately */
	for (size_t i = 0; i < told.count; i++) {
		struct probe *probe = told.of[i].probe;
		expect_eq(told.of[i].timer.id, probe->timer.id);
		expect_eq(told.of[i].self.id, probe->timer.id);
		cr_assert(told.of[i].fn == probe_run);
		expect_eq(told.of[i].releases, 0);
		expect_eq(told.of[i].remaining_ns, delays_ns[probe->id]);
		expect_eq(probe->runs, 0);
		expect_eq(probe->releases, probe->id % 2 == 0);
		for (size_t j = 0; j < i; j++)
			cr_assert(told.of[j].probe != probe);
	}
	expect_eq(stats_of(rig.service).dropped, COUNT - 1);
	expect_eq(tw_self().id, 0);
	rig_close(&rig);
}

Test(close_with, a_visitor_is_not_told_of_what_runs)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct told told = {.service = rig.service};
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, HOUR);
	struct tw_close_options options = telling(&told, TW_CLOSE_RUN);
	expect_eq(tw_service_close_with(rig.service, &options), 0);
	expect_eq(probe.runs, 1);
	expect_eq(told.count, 0);
	rig_close(&rig);
}

Test(close_with, a_visitor_is_told_of_what_a_drain_leaves)
{
	tw_service *service = open_service(1);
	struct told told = {.service = service};
	struct probe probe = {.id = 1};
	expect_eq(tw_schedule(service, HOUR, probe_run, &probe, &probe.timer), 0);
	struct tw_close_options options = telling(&told, TW_CLOSE_DRAIN);
	options.timeout_ns = MS;
	while (tw_service_close_with(service, &options) == -ETIMEDOUT)
		; /* a tick thread that has no processor is not waited for longer than a second */
	expect_eq(told.count, 1);
	expect_eq(told.of[0].timer.id, probe.timer.id);
	expect_gt(told.of[0].remaining_ns, HOUR - MINUTE);
	close_service(service);
}

static void try_everything(struct told *told, tw_timer timer)
{
	tw_service *service = told->service;
	bool releasing = told->count == 1; /* the first one has a release still to come */
	struct tw_service_stats stats = {.size = sizeof(stats)};
	told->fine =
	    tw_schedule(service, 0, probe_run, NULL, NULL) == -ESHUTDOWN &&
	    tw_cancel(service, timer) == (releasing ? TW_RUNNING : TW_GONE) &&
	    tw_cancel_wait(service, timer, TW_FOREVER) == (releasing ? TW_SELF : TW_GONE) &&
	    tw_reset(service, timer, 0) == -ESHUTDOWN && !tw_is_pending(service, timer) &&
	    tw_service_close(service, TW_CLOSE_DROP, 0) == -EDEADLK &&
	    tw_service_close_with(service, &no_wait) == -EDEADLK &&
	    tw_service_destroy(service) == -EDEADLK && tw_service_stats(service, &stats) == 0 &&
	    (told->count == 1 || told->fine);
}

Test(close_with, a_visitor_may_call_what_a_release_may)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct told told = {.service = rig.service, .act = try_everything};
	struct probe released = PROBE(&rig, 1), plain = PROBE(&rig, 2);
	probe_schedule_released(&released, SECOND);
	probe_schedule(&plain, SECOND);
	struct tw_close_options options = telling(&told, TW_CLOSE_DROP);
	expect_eq(tw_service_close_with(rig.service, &options), 0);
	expect_eq(told.count, 2);
	expect_eq(told.fine, true);
	expect_released(&released, TW_FATE_DROPPED);
	rig_close(&rig);
}

static void cancel_the_others(struct told *told, tw_timer timer)
{
	(void)timer;
	for (struct probe *probe = told->of[0].probe; (probe = probe->other);)
		probe->answer = tw_cancel(told->service, probe->timer);
}

/* One fate each, whoever is faster. */
Test(close_with, a_visitor_may_cancel_the_others)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct told told = {.service = rig.service, .act = cancel_the_others};
	struct probe probes[3];
	for (int i = 2; i >= 0; i--) {
		probes[i] = PROBE(&rig, i);
		probes[i].other = i < 2 ? &probes[i + 1] : NULL;
	}
	for (int i = 0; i < 3; i++)
		probe_schedule_released(&probes[i], SECOND);
	struct tw_close_options options = telling(&told, TW_CLOSE_DROP);
	expect_eq(tw_service_close_with(rig.service, &options), 0);
	expect_eq(told.count, 1);
	expect_released(&probes[0], TW_FATE_DROPPED);
	expect_released(&probes[1], TW_FATE_CANCELLED);
	expect_released(&probes[2], TW_FATE_CANCELLED);
	rig_close(&rig);
}

/* ------------------------------------------------------------ bad options */

struct newer_options {
	struct tw_close_options known;
	unsigned char tail[16];
};

Test(close_with, bad_options_change_nothing)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MS);
	struct tw_service_stats before = stats_of(rig.service);
	const struct tw_close_options good = {.size = sizeof(good)};
	struct tw_close_options bad = good;
	struct newer_options newer;
	expect_eq(tw_service_close_with(NULL, &good), -EINVAL);
	expect_eq(tw_service_close_with(rig.service, NULL), -EINVAL);
	bad.size = 0;
	expect_eq(tw_service_close_with(rig.service, &bad), -EINVAL);
	bad.size = offsetof(struct tw_close_options, mode);
	expect_eq(tw_service_close_with(rig.service, &bad), -EINVAL);
	bad = good;
	bad.mode = (enum tw_close_mode)3;
	expect_eq(tw_service_close_with(rig.service, &bad), -EINVAL);
	bad = good;
	bad.flags = 2;
	expect_eq(tw_service_close_with(rig.service, &bad), -EINVAL);
	memset(&newer, 0, sizeof(newer));
	newer.known.size = sizeof(newer);
	newer.tail[15] = 1;
	expect_eq(tw_service_close_with(rig.service, &newer.known), -E2BIG);
	expect_untouched(&before, rig.service);
	rig_advance(&rig, MS);
	expect_eq(probe.runs, 1);
	newer.tail[15] = 0;
	expect_eq(tw_service_close_with(rig.service, &newer.known), 0);
	rig_close(&rig);
}

Test(close_with, options_of_an_older_program_will_do)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MS);
	struct tw_close_options older = {.size = offsetof(struct tw_close_options, flags),
					 .mode = TW_CLOSE_RUN};
	older.flags = UINT32_MAX; /* not looked at */
	expect_eq(tw_service_close_with(rig.service, &older), 0);
	expect_eq(probe.runs, 1);
	rig_close(&rig);
}

/* ------------------------------------------------------------ not waiting */

static struct queue_executor queue;
static sem_t entered, go_on;

static void stand_still(struct probe *probe)
{
	if (probe->other) /* asks for more before, which close must see to */
		probe->answer = tw_reset(probe->rig->service, tw_self(), MS);
	sem_post(&entered);
	await(&go_on, 1);
}

static void *run_next(void *arg)
{
	(void)arg;
	queue_executor_run_next(&queue);
	return NULL;
}

static void open_with_queue(struct rig *rig)
{
	sem_init(&entered, 0, 0);
	sem_init(&go_on, 0, 0);
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	rig_open(rig, &cfg);
}

/* One runs, one waits in the executor, one in the wheel: only the first goes on. */
Test(close_with, no_wait_leaves_a_running_callback_behind_and_nothing_else)
{
	struct rig rig;
	open_with_queue(&rig);
	struct probe running = PROBE(&rig, 1), handed = PROBE(&rig, 2), waiting = PROBE(&rig, 3);
	running.act = stand_still;
	running.other = &running;
	probe_schedule_released(&running, MS);
	probe_schedule_released(&handed, MS);
	probe_schedule_released(&waiting, SECOND);
	rig_advance(&rig, MS);
	pthread_t runner;
	expect_eq(pthread_create(&runner, NULL, run_next, NULL), 0);
	await(&entered, 1);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	expect_eq(tw_service_close_with(rig.service, &no_wait), 0);
	expect_released(&handed, TW_FATE_DROPPED);
	expect_released(&waiting, TW_FATE_DROPPED);
	expect_eq(running.releases, 0);
	expect_eq(tw_schedule(rig.service, 0, probe_run, &running, NULL), -ESHUTDOWN);
	expect_eq(tw_cancel(rig.service, handed.timer), TW_GONE);
	expect_eq(tw_cancel_wait(rig.service, running.timer, MS), TW_RUNNING);
	expect_eq(tw_service_close_with(rig.service, &no_wait), 0);
	expect_eq(queue_executor_run_next(&queue), 0); /* a ticket for nothing */
	sem_post(&go_on);
	pthread_join(runner, NULL);
	expect_eq(running.answer, 0);
	expect_eq(running.runs, 1);
	expect_eq(handed.runs, 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(running.releases, 1);
	expect_eq(running.runs, 1);
	rig_close(&rig);
	queue_executor_close(&queue);
}

/* The run that is to be waited for by no one is waited for by those who ask. */
Test(close_with, no_wait_leaves_waiting_to_others)
{
	sem_init(&entered, 0, 0);
	sem_init(&go_on, 0, 0);
	for (int mode = TW_CLOSE_DROP; mode <= TW_CLOSE_DRAIN; mode++) {
		tw_service *service = open_service(2);
		struct rig rig = {.service = service, .lock = PTHREAD_MUTEX_INITIALIZER};
		struct probe probes[2];
		struct tw_close_options options = no_wait;
		options.mode = (enum tw_close_mode)mode;
		for (int i = 0; i < 2; i++) {
			probes[i] = PROBE(&rig, i);
			probes[i].act = stand_still;
			probe_schedule_released(&probes[i], 0);
		}
		await(&entered, 2);
		expect_eq(tw_service_close_with(service, &options), 0);
		expect_eq(stats_of(service).pending + stats_of(service).fired, 0);
		expect_eq(probes[0].releases + probes[1].releases, 0);
		expect_eq(tw_service_close(service, (enum tw_close_mode)mode, MS), -ETIMEDOUT);
		sem_post(&go_on);
		sem_post(&go_on);
		expect_ne(tw_cancel_wait(service, probes[0].timer, TW_FOREVER), TW_RUNNING);
		expect_eq(probes[0].releases, 1);
		expect_eq(tw_service_destroy(service), 0); /* waits for the other */
		expect_eq(probes[1].releases, 1);
		free(rig.events);
	}
}

/* RUN without waiting: 0 only when all have started. */
Test(close_with, no_wait_runs_what_is_pending_first)
{
	struct rig rig;
	open_with_queue(&rig);
	struct probe one = PROBE(&rig, 1), two = PROBE(&rig, 2);
	one.act = two.act = stand_still;
	probe_schedule_released(&one, HOUR);
	probe_schedule_released(&two, 100 * DAY);
	struct tw_close_options options = no_wait;
	options.mode = TW_CLOSE_RUN;
	options.timeout_ns = MS;
	pthread_t runners[2];
	for (int i = 0; i < 2; i++) {
		expect_eq(tw_service_close_with(rig.service, &options), -ETIMEDOUT);
		expect_eq(pthread_create(&runners[i], NULL, run_next, NULL), 0);
		await(&entered, 1);
	}
	options.timeout_ns = TW_FOREVER;
	expect_eq(tw_service_close_with(rig.service, &options), 0);
	expect_eq(one.releases + two.releases, 0);
	sem_post(&go_on);
	sem_post(&go_on);
	for (int i = 0; i < 2; i++)
		pthread_join(runners[i], NULL);
	expect_released(&one, TW_FATE_FIRED);
	expect_released(&two, TW_FATE_FIRED);
	rig_close(&rig);
	queue_executor_close(&queue);
}
