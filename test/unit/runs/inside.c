/*
 * G7: callbacks may call anything, on themselves too; what would wait for its own caller is
 * refused.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/rig_suite.h"
#include "test/support/current.h"

TestSuite(runs_inside, .init = open_rig, .fini = close_rig, .timeout = 30);

/* ------------------------------------------------------------ outside */

Test(runs_inside, outside_of_callbacks_there_is_no_self)
{
	expect_eq(tw_self().id, 0);
	expect_eq(current_run().overruns, 0);
	expect_eq(current_run().closing, false);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 0);
	rig_advance(&rig, MS);
	expect_eq(tw_self().id, 0);
}

static void note_self_in_release(struct probe *probe)
{
	probe->answer = tw_self().id == probe->timer.id;
}

Test(runs_inside, a_release_knows_its_timer)
{
	struct probe fired = PROBE(&rig, 1), cancelled = PROBE(&rig, 2);
	fired.act_in_release = cancelled.act_in_release = note_self_in_release;
	probe_schedule_released(&fired, 0);
	probe_schedule_released(&cancelled, SECOND);
	rig_advance(&rig, MS);
	expect_eq(tw_cancel(rig.service, cancelled.timer), TW_CANCELLED);
	expect_eq(fired.answer, 1);
	expect_eq(cancelled.answer, 1);
	expect_eq(tw_self().id, 0);
}

/* A release called inside another timer's callback: the callback is itself again afterwards. */
static void cancel_other_and_compare_self(struct probe *probe)
{
	tw_cancel(probe->rig->service, probe->other->timer);
	probe->answer = tw_self().id == probe->timer.id;
}

Test(runs_inside, self_survives_the_release_of_another)
{
	struct probe outer = PROBE(&rig, 1), inner = PROBE(&rig, 2);
	outer.act = cancel_other_and_compare_self;
	outer.other = &inner;
	inner.act_in_release = note_self_in_release;
	probe_schedule_released(&inner, SECOND);
	probe_schedule(&outer, MS);
	rig_advance(&rig, MS);
	expect_eq(inner.answer, 1);
	expect_released(&inner, TW_FATE_CANCELLED);
	expect_eq(outer.answer, 1);
}

/* ------------------------------------------------------------ the driver's own caller */

static void advance_nested(struct probe *probe)
{
	probe->answer = tw_service_advance(probe->rig->service, TW_NO_LIMIT);
}

static void move_the_clock(struct probe *probe)
{
	probe->answer = tw_clock_manual_advance_by(probe->rig->clock, MS);
}

static void destroy_the_service(struct probe *probe)
{
	probe->answer = tw_service_destroy(probe->rig->service);
}

static void close_the_service(struct probe *probe)
{
	probe->answer = 0;
	for (int mode = TW_CLOSE_DROP; mode <= TW_CLOSE_DRAIN; mode++)
		probe->answer |=
		    tw_service_close(probe->rig->service, (enum tw_close_mode)mode, 0) != -EDEADLK;
}

static void validate_the_service(struct probe *probe)
{
	probe->answer = tw_service_validate(probe->rig->service, NULL, 0);
}

/* A timer after it shows that the service goes on. timer/outcomes.c: calls on the timer itself. */
Test(runs_inside, what_would_wait_for_its_own_caller_is_refused)
{
	static const struct {
		void (*act)(struct probe *probe);
		int answer;
	} rows[] = {{advance_nested, -EBUSY},
		    {move_the_clock, -EDEADLK},
		    {destroy_the_service, -EDEADLK},
		    {close_the_service, 0},
		    {validate_the_service, -EBUSY}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct probe probe = PROBE(&rig, 1), after = PROBE(&rig, 2);
		probe.act = rows[i].act;
		probe.answer = 12345;
		probe_schedule(&probe, MS);
		probe_schedule(&after, 2 * MS);
		rig_advance(&rig, 2 * MS);
		expect_eq(probe.answer, rows[i].answer);
		expect_eq(probe.runs, 1);
		expect_eq(after.runs, 1);
	}
}

static void read_everything(struct probe *probe)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	uint64_t left_ns = 0;
	bool good = tw_service_stats(probe->rig->service, &stats) == 0 && stats.scheduled == 2;
	good = good && tw_service_now(probe->rig->service) == rig_now(probe->rig);
	good = good && !tw_is_pending(probe->rig->service, tw_self());
	good = good && tw_is_pending(probe->rig->service, probe->other->timer);
	good = good && tw_remaining(probe->rig->service, probe->other->timer, &left_ns) == 0 &&
	       left_ns == MS;
	probe->answer = good;
}

Test(runs_inside, everything_can_be_read)
{
	struct probe probe = PROBE(&rig, 1), other = PROBE(&rig, 2);
	probe.act = read_everything;
	probe.other = &other;
	probe_schedule(&probe, MS);
	probe_schedule(&other, 2 * MS);
	rig_advance(&rig, MS);
	expect_eq(probe.answer, 1);
}

/* ------------------------------------------------------------ two services */

static void schedule_on_other_rig(struct probe *probe)
{
	struct probe *other = probe->other;
	probe->answer = tw_schedule(other->rig->service, 0, probe_run, other, &other->timer);
}

Test(runs_inside, another_service_may_be_used)
{
	struct rig mine, theirs;
	rig_open(&mine, NULL);
	rig_open(&theirs, NULL);
	struct probe probe = PROBE(&mine, 1), other = PROBE(&theirs, 2);
	probe.act = schedule_on_other_rig;
	probe.other = &other;
	probe_schedule(&probe, MS);
	rig_advance(&mine, MS);
	expect_eq(probe.answer, 0);
	rig_advance(&theirs, 0);
	expect_eq(other.runs, 1);
	rig_close(&mine);
	rig_close(&theirs);
}
