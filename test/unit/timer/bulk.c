/* Bulk schedule: all or nothing, in array order, with any mix of tasks and whatever fails. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/faults.h"
#include "test/support/rig.h"

TestSuite(timer_bulk, .timeout = 60);

enum { MANY = 3000 };

static struct probe probes[MANY];
static struct tw_task tasks[MANY];
static tw_timer timers[MANY];

/* n plain tasks, due together. */
static void make_tasks(struct rig *rig, size_t n, uint64_t when_ns)
{
	for (size_t i = 0; i < n; i++) {
		probes[i] = PROBE(rig, (int)i);
		tasks[i] = (struct tw_task){.size = sizeof(struct tw_task),
					    .fn = probe_run,
					    .arg = &probes[i],
					    .when_ns = when_ns};
		timers[i].id = 1;
	}
}

static void expect_no_timers(size_t n)
{
	for (size_t i = 0; i < n; i++)
		expect_eq(timers[i].id, 0);
}

Test(timer_bulk, of_plain_timers_runs_in_array_order)
{
	struct rig rig;
	rig_open(&rig, NULL);
	make_tasks(&rig, MANY, 5 * MS);
	expect_eq(tw_schedule_bulk(rig.service, tasks, MANY, timers), 0);
	expect_eq(stats_of(rig.service).pending, MANY);
	expect_sound(rig.service);
	rig_advance(&rig, 5 * MS - 1);
	expect_eq(rig.ran, 0);
	rig_advance(&rig, 1);
	expect_eq(rig.ran, MANY);
	expect_ids_ascend(&rig);
	for (size_t i = 0; i < MANY; i++)
		expect_eq(rig.events[i].self, timers[i].id);
	expect_eq(stats_of(rig.service).scheduled, MANY);
	expect_eq(stats_of(rig.service).fired, MANY);
	rig_close(&rig);
}

/* Each kind of task beside each other, with deadlines of all sorts: as if scheduled one by one. */
Test(timer_bulk, of_mixed_tasks_keeps_each_ones_deadline)
{
	struct rig rig;
	rig_open(&rig, NULL);
	make_tasks(&rig, MANY, 0);
	struct tw_period period = rate_of(7 * MS, SECOND, 0);
	uint64_t seed = 11;
	for (size_t i = 0; i < MANY; i++) {
		uint64_t delay_ns = i % 50 == 0 ? 400 * DAY : random_below(&seed, 10 * SECOND);
		tasks[i].when_ns = delay_ns;
		if (i % 3 == 1) {
			tasks[i].flags = TW_TASK_AT;
			tasks[i].when_ns = RIG_START_NS + delay_ns;
		}
		if (i % 7 == 2)
			tasks[i].release = probe_release;
		if (i % 11 == 3) {
			tasks[i].period = &period;
			tasks[i].flags = tasks[i].when_ns = 0;
		}
	}
	expect_eq(tw_schedule_bulk(rig.service, tasks, MANY, timers), 0);
	memset(&period, 0, sizeof(period)); /* read during the call only */
	for (size_t i = 0; i < MANY; i++) {
		uint64_t left_ns,
		    wanted_ns = tasks[i].when_ns - (tasks[i].flags ? RIG_START_NS : 0);
		wanted_ns = tasks[i].period ? 7 * MS : wanted_ns;
		expect_eq(tw_remaining(rig.service, timers[i], &left_ns), 0);
		if (wanted_ns < HOUR)
			expect_eq(left_ns, rig_tick_of(&rig, wanted_ns));
	}
	rig_advance(&rig, 7 * MS);
	rig_advance(&rig, 10 * SECOND - 7 * MS);
	for (size_t i = 0; i < MANY; i++) {
		bool far = i % 50 == 0 && !tasks[i].period;
		expect_eq(probes[i].runs, tasks[i].period ? 10 : !far);
		expect_eq(probes[i].releases, tasks[i].release && !tasks[i].period && !far);
		if (!far)
			continue;
		expect_eq(tw_cancel(rig.service, timers[i]), TW_CANCELLED);
	}
	rig_close(&rig);
}

Test(timer_bulk, follows_what_the_thread_scheduled_before_and_precedes_what_comes_after)
{
	struct rig rig;
	rig_open(&rig, NULL);
	make_tasks(&rig, 1000, MS);
	for (size_t i = 0; i < 100; i++)
		probe_schedule(&probes[i], MS);
	expect_eq(tw_schedule_bulk(rig.service, tasks + 100, 800, timers), 0);
	for (size_t i = 900; i < 1000; i++)
		probe_schedule(&probes[i], MS);
	rig_advance(&rig, MS);
	expect_eq(rig.ran, 1000);
	expect_ids_ascend(&rig);
	rig_close(&rig);
}

Test(timer_bulk, of_none_does_nothing)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct tw_service_stats before = stats_of(rig.service);
	expect_eq(tw_schedule_bulk(rig.service, NULL, 0, NULL), 0);
	expect_eq(tw_schedule_bulk(rig.service, tasks, 0, timers), 0);
	expect_eq(tw_schedule_bulk(NULL, tasks, 0, timers), -EINVAL);
	expect_untouched(&before, rig.service);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
	expect_eq(tw_schedule_bulk(rig.service, NULL, 0, NULL), 0);
	rig_close(&rig);
}

Test(timer_bulk, needs_no_room_for_handles)
{
	struct rig rig;
	rig_open(&rig, NULL);
	make_tasks(&rig, 600, MS);
	expect_eq(tw_schedule_bulk(rig.service, tasks, 600, NULL), 0);
	rig_advance(&rig, MS);
	expect_eq(rig.ran, 600);
	rig_close(&rig);
}

/* ------------------------------------------------------------ refusals */

/*
 * One bad task at each place of interest: nothing is scheduled, nothing is lost, and a good batch
 * works afterwards.
 */
static void expect_refused(const struct tw_task *bad, int error)
{
	static const size_t places[] = {0, 1, 255, 256, 1500, MANY - 1};
	struct rig rig;
	rig_open(&rig, NULL);
	make_tasks(&rig, MANY, MS);
	for (size_t i = 0; i < MANY; i += 5)
		tasks[i].release = probe_release; /* extension records must come back too */
	for (size_t p = 0; p < sizeof(places) / sizeof(*places); p++) {
		struct tw_task good = tasks[places[p]];
		struct tw_service_stats before = stats_of(rig.service);
		tasks[places[p]] = *bad;
		expect_eq(tw_schedule_bulk(rig.service, tasks, MANY, timers), error);
		tasks[places[p]] = good;
		struct tw_service_stats after = stats_of(rig.service);
		expect_same_state(&before, &after);
		expect_eq(after.rejected - before.rejected,
			  error == -EINVAL || error == -E2BIG ? 0 : MANY);
		expect_eq(timers[0].id, error == -EINVAL || error == -E2BIG);
		timers[0].id = 1;
		expect_sound(rig.service);
	}
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, 0);
	expect_eq(tw_schedule_bulk(rig.service, tasks, MANY, timers), 0);
	rig_advance(&rig, MS);
	expect_eq(rig.ran, MANY);
	expect_ids_ascend(&rig);
	for (size_t i = 0; i < MANY; i++)
		expect_eq(probes[i].releases, i % 5 == 0);
	rig_close(&rig);
}

Test(timer_bulk, with_a_bad_task_schedules_nothing)
{
	const struct tw_task good = {.size = sizeof(good), .fn = probe_run};
	struct tw_task bad = good;
	bad.fn = NULL;
	expect_refused(&bad, -EINVAL);
	bad = good;
	bad.reserved = 1;
	expect_refused(&bad, -EINVAL);
	bad = good;
	bad.flags = 0x80000000;
	expect_refused(&bad, -EINVAL);
}

Test(timer_bulk, with_a_bad_series_schedules_nothing)
{
	struct tw_period period = rate_of(0, 0, 0);
	const struct tw_task bad = {.size = sizeof(bad), .fn = probe_run, .period = &period};
	expect_refused(&bad, -EINVAL);
	period = rate_of(0, TW_MAX_DELAY_NS + 1, 0);
	expect_refused(&bad, -ERANGE);
}

Test(timer_bulk, with_a_task_out_of_range_schedules_nothing)
{
	struct tw_task bad = {.size = sizeof(bad), .fn = probe_run, .when_ns = TW_MAX_DELAY_NS + 1};
	expect_refused(&bad, -ERANGE);
	bad.flags = TW_TASK_AT;
	bad.when_ns = UINT64_MAX;
	expect_refused(&bad, -ERANGE);
}

Test(timer_bulk, of_more_timers_than_there_may_be_schedules_nothing)
{
	struct tw_service_config cfg = rig_config();
	cfg.max_timers = 1000;
	struct rig rig;
	rig_open(&rig, &cfg);
	make_tasks(&rig, MANY, MS);
	for (int round = 0; round < 3; round++) {
		expect_eq(tw_schedule_bulk(rig.service, tasks, MANY, timers), -EAGAIN);
		expect_no_timers(MANY);
		expect_eq(stats_of(rig.service).pending, 0);
		expect_eq(tw_schedule_bulk(rig.service, tasks, 1000, timers), 0);
		expect_eq(tw_schedule_bulk(rig.service, tasks, 1256, timers + 1000), -EAGAIN);
		rig_advance(&rig, MS);
		expect_eq(rig.ran, 1000 * (size_t)(round + 1));
	}
	expect_eq(stats_of(rig.service).rejected, 3 * (MANY + 1256));
	rig_close(&rig);
}

Test(timer_bulk, of_more_entries_than_a_lane_may_hold_schedules_nothing)
{
	struct tw_service_config cfg = rig_config();
	cfg.lane_entries = 1024;
	struct rig rig;
	rig_open(&rig, &cfg);
	make_tasks(&rig, MANY, MS);
	expect_eq(tw_schedule_bulk(rig.service, tasks, 1024, timers), -EAGAIN);
	expect_eq(tw_schedule_bulk(rig.service, tasks, 600, timers), 0);
	expect_eq(tw_schedule_bulk(rig.service, tasks + 600, 600, timers + 600), -EAGAIN);
	expect_eq(stats_of(rig.service).pending, 600);
	for (int i = 0; i < 300; i++)
		expect_eq(tw_cancel(rig.service, timers[i]), TW_CANCELLED);
	/* nor with the dead gone */
	expect_eq(tw_schedule_bulk(rig.service, tasks + 600, 1000, timers + 600), -EAGAIN);
	expect_sound(rig.service);
	/* the dead made room */
	expect_eq(tw_schedule_bulk(rig.service, tasks + 600, 600, timers + 600), 0);
	rig_advance(&rig, MS);
	expect_eq(rig.ran, 900);
	expect_ids_ascend(&rig);
	rig_close(&rig);
}

Test(timer_bulk, on_a_closed_service_schedules_nothing)
{
	struct rig rig;
	rig_open(&rig, NULL);
	make_tasks(&rig, MANY, MS);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
	expect_eq(tw_schedule_bulk(rig.service, tasks, MANY, timers), -ESHUTDOWN);
	expect_no_timers(MANY);
	expect_eq(stats_of(rig.service).scheduled, 0);
	expect_eq(stats_of(rig.service).rejected, MANY);
	rig_close(&rig);
}

/* Each request for memory is refused, one after the other, including the first of the thread. */
Test(timer_bulk, without_memory_schedules_nothing)
{
	struct rig rig;
	rig_open(&rig, NULL);
	make_tasks(&rig, MANY, MS);
	long nth = 0;
	for (;; nth++) {
		faults_arm(nth, false);
		int r = tw_schedule_bulk(rig.service, tasks, MANY, timers);
		if (!faults_disarm()) {
			expect_eq(r, 0);
			break;
		}
		expect_eq(r, -ENOMEM);
		expect_no_timers(MANY);
		expect_eq(stats_of(rig.service).pending, 0);
	}
	/* those of the lane itself were had when the rig was opened, or come first */
	expect_ge(nth, 2);
	rig_advance(&rig, MS);
	expect_eq(rig.ran, MANY);
	expect_ids_ascend(&rig);
	rig_close(&rig);
}

/* ------------------------------------------------------------ older and newer callers */

struct newer_task {
	struct tw_task known;
	uint64_t tail[5];
};

Test(timer_bulk, of_a_newer_caller_is_read_with_its_own_stride)
{
	static struct newer_task newer[700];
	struct rig rig;
	rig_open(&rig, NULL);
	make_tasks(&rig, 700, MS);
	for (size_t i = 0; i < 700; i++) {
		newer[i].known = tasks[i];
		newer[i].known.size = sizeof(newer[i]);
	}
	newer[699].tail[4] = 1;
	expect_eq(tw_schedule_bulk(rig.service, &newer[0].known, 700, timers), -E2BIG);
	newer[699].tail[4] = 0;
	expect_eq(tw_schedule_bulk(rig.service, &newer[0].known, 700, timers), 0);
	rig_advance(&rig, MS);
	expect_eq(rig.ran, 700);
	expect_ids_ascend(&rig);
	rig_close(&rig);
}

Test(timer_bulk, of_an_older_caller_is_read_with_its_own_stride)
{
	enum { OLD = offsetof(struct tw_task, period) };
	static union {
		uint64_t aligned;
		unsigned char bytes[700 * OLD];
	} older;
	struct rig rig;
	rig_open(&rig, NULL);
	make_tasks(&rig, 700, MS);
	for (size_t i = 0; i < 700; i++) {
		tasks[i].size = OLD;
		memcpy(older.bytes + i * OLD, &tasks[i], OLD);
	}
	expect_eq(tw_schedule_bulk(rig.service, (struct tw_task *)(void *)older.bytes, 700, timers),
		  0);
	rig_advance(&rig, MS);
	expect_eq(rig.ran, 700);
	expect_ids_ascend(&rig);
	rig_close(&rig);
}

Test(timer_bulk, whose_sizes_are_unsound_schedules_nothing)
{
	struct rig rig;
	rig_open(&rig, NULL);
	make_tasks(&rig, 10, MS);
	struct tw_service_stats before = stats_of(rig.service);
	static const size_t sizes[] = {0, sizeof(size_t), sizeof(struct tw_task) + 1,
				       offsetof(struct tw_task, arg)};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		tasks[0].size = sizes[i];
		expect_eq(tw_schedule_bulk(rig.service, tasks, 10, timers), -EINVAL);
	}
	tasks[0].size = sizeof(struct tw_task);
	tasks[9].size = sizeof(struct tw_task) - 8;
	expect_eq(tw_schedule_bulk(rig.service, tasks, 10, timers), -EINVAL);
	expect_eq(tw_schedule_bulk(NULL, tasks, 10, timers), -EINVAL);
	expect_eq(tw_schedule_bulk(rig.service, NULL, 10, timers), -EINVAL);
	expect_eq(timers[0].id, 1);
	expect_untouched(&before, rig.service);
	rig_close(&rig);
}

/* ------------------------------------------------------------ waking */

/*
 * With a tick thread that sleeps: the earliest of the batch decides, wherever it stands, and one
 * wake-up does.
 */
Test(timer_bulk, wakes_a_sleeping_tick_thread_for_its_earliest)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .executor = tw_executor_inline()};
	tw_service *service;
	struct rig rig = {.lock = PTHREAD_MUTEX_INITIALIZER, .clock = tw_clock_monotonic()};
	expect_eq(tw_service_create(&service, &cfg), 0);
	make_tasks(&rig, 100, HOUR);
	tasks[57].when_ns = 2 * MS;
	uint64_t begun_ns = tw_service_now(service);
	expect_eq(tw_schedule_bulk(service, tasks, 100, timers), 0);
	while (!atomic_load(&probes[57].runs))
		;
	expect_ge(probes[57].ran_at_ns, begun_ns + 2 * MS);
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(rig.ran, 1);
	free(rig.events);
}
