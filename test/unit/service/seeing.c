/* Seeing inside: counters, sizes of the stats struct, listings, hints. */
#include <stdlib.h>
#include <string.h>

#include "test/support/liveness.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(service_seeing, .init = open_rig, .fini = close_rig, .timeout = 30);

/* ------------------------------------------------------------ the ledger */

static const struct script ledger[] = {
    {"a fresh service has counted nothing",
     {{"stats scheduled fired cancelled dropped pending rejected runs overruns resets entries "
       "dead_entries",
       "scheduled=0, fired=0, cancelled=0, dropped=0, pending=0, rejected=0, runs=0, overruns=0, "
       "resets=0, entries=0, dead_entries=0"}}},
    {"each fate is counted",
     {{"timer 0..3 in=1 plain; timer 4..9 in=9 plain; drive 1", "@1 run 0, run 1, run 2, run 3"},
      {"cancel 7..9", "CANCELLED, CANCELLED, CANCELLED"},
      {"stats scheduled fired runs cancelled pending",
       "scheduled=10, fired=4, runs=4, cancelled=3, pending=3"},
      {"close drop; stats dropped pending", "dropped=3, pending=0"}}},
    {"entries count what lies in the wheel; threads what uses the service",
     {{"timer 0..4 in=9 plain; drive 1; stats entries threads", "@1 entries=5, threads=1"},
      {"cancel 0 1; stats pending", "CANCELLED, CANCELLED, pending=3"},
      {"stats entries dead_entries", "entries=5, dead_entries=2"},
      {"drive 8; stats entries", "@9 run 2, run 3, run 4, entries=0"}}},
};

Test(service_seeing, the_ledger_follows_the_scripts)
{
	PLAY(&timer_stage, NULL, ledger);
}

Test(service_seeing, the_wait_for_an_executor_is_measured)
{
	reopen_on_queue();
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MS);
	rig_advance(&rig, MS);
	rig_advance(&rig, 30 * MS);
	expect_eq(queue_executor_run_all(&queue), 1);
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(stats.wait.count, 1);
	expect_ge(stats.wait.max_ns, 30 * MS);
	expect_le(stats.wait.max_ns, 34 * MS);
	expect_lt(stats.lateness.max_ns, MS);
}

/* The members' names and values are in step from the first to the last. */
Test(service_seeing, a_dump_has_the_statistics_that_are_not_0)
{
	tw_timer timer;
	struct probe probe = PROBE(&rig, 1);
	struct tw_task persistent = {.size = sizeof persistent,
				     .fn = probe_run,
				     .when_ns = TW_NEVER,
				     .flags = TW_TASK_PERSISTENT};
	probe_schedule(&probe, SECOND);
	be_late(&probe, 1 << 20);
	expect_eq(tw_schedule_task(rig.service, &persistent, &timer), 0);
	char *dump = dump_of(rig.service);
	cr_assert(strstr(dump, "statistics: scheduled=3 fired=1 pending=1 runs=1 ") &&
		      strstr(dump, " lateness.max_ns=1048576 ") && strstr(dump, " disarmed=1\n") &&
		      !strstr(dump, "=0"),
		  "%s", dump);
	free(dump);
}

/* ------------------------------------------------------------ foreach */

struct visits {
	size_t count;
	size_t stop_after;
	uint64_t ids[200];
	bool wrong;
	bool cancel;
};

static int visit(void *arg, tw_timer timer, tw_fn *fn, void *timer_arg, uint64_t remaining_ns)
{
	struct visits *visits = arg;
	struct probe *probe = timer_arg;
	uint64_t left_ns = 0;
	visits->wrong |= fn != probe_run || probe->timer.id != timer.id;
	visits->wrong |= tw_remaining(rig.service, timer, &left_ns) != 0 || left_ns != remaining_ns;
	visits->ids[visits->count++ % 200] = timer.id;
	if (visits->cancel)
		visits->wrong |= tw_cancel(rig.service, timer) != TW_CANCELLED;
	return visits->count == visits->stop_after ? 77 : 0;
}

static struct probe listed[100];

static void schedule_listed(void)
{
	for (int i = 0; i < 100; i++) {
		listed[i] = PROBE(&rig, i);
		probe_schedule(&listed[i], (uint64_t)(i + 1) * SECOND);
	}
}

Test(service_seeing, foreach_visits_each_pending_timer_once)
{
	schedule_listed();
	rig_advance(&rig, 10 * SECOND);
	expect_eq(tw_cancel(rig.service, listed[50].timer), TW_CANCELLED);
	struct visits visits = {0};
	expect_eq(tw_service_foreach(rig.service, visit, &visits), 0);
	expect_eq(visits.count, 89);
	expect_eq(visits.wrong, false);
	for (int i = 0; i < 89; i++)
		for (int j = 0; j < i; j++)
			expect_ne(visits.ids[i], visits.ids[j]);
}

Test(service_seeing, foreach_stops_when_told_and_lets_its_visitor_cancel)
{
	schedule_listed();
	struct visits visits = {.stop_after = 30}, cancels = {.cancel = true};
	expect_eq(tw_service_foreach(rig.service, visit, &visits), 77);
	expect_eq(visits.count, 30);
	expect_eq(tw_service_foreach(rig.service, visit, &cancels), 0);
	expect_eq(cancels.count, 100);
	expect_eq(visits.wrong || cancels.wrong, false);
	expect_eq(stats_of(rig.service).cancelled, 100);
	rig_advance(&rig, HOUR);
	expect_eq(rig.ran, 0);
}

static int visit_and_schedule(void *arg, tw_timer timer, tw_fn *fn, void *timer_arg,
			      uint64_t remaining_ns)
{
	struct visits *visits = arg;
	static struct probe added[50];
	if (visits->count < 50) {
		added[visits->count] = PROBE(&rig, 1000);
		visits->wrong |=
		    tw_schedule(rig.service, MS, probe_run, &added[visits->count], NULL) != 0;
		visits->count++;
	}
	return 0;
}

Test(service_seeing, foreach_lets_its_visitor_schedule)
{
	schedule_listed();
	struct visits visits = {0};
	expect_eq(tw_service_foreach(rig.service, visit_and_schedule, &visits), 0);
	expect_eq(visits.wrong, false);
	rig_advance(&rig, MS);
	expect_eq(rig.ran, 50);
}

/* ------------------------------------------------------------ hints */

Test(service_seeing, now_is_the_clocks_reading)
{
	expect_eq(tw_service_now(rig.service), RIG_START_NS);
	rig_advance(&rig, 12345);
	expect_eq(tw_service_now(rig.service), RIG_START_NS + 12345);
	expect_eq(tw_service_now(NULL), 0);
}

Test(service_seeing, the_version_linked_is_the_version_compiled_against)
{
	expect_eq(tw_version(), TW_VERSION);
}

Test(service_seeing, validate_needs_no_room_for_a_reason)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MS);
	char why[4] = "xyz";
	expect_eq(tw_service_validate(rig.service, NULL, 0), 0);
	expect_eq(tw_service_validate(rig.service, why, 0), 0);
	expect_eq(why[0], 'x');
	expect_eq(tw_service_validate(rig.service, why, sizeof(why)), 0);
}
