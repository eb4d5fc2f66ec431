/*
 * G7: callbacks may call anything, on themselves too; what would wait for its own caller is
 * refused.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/rig.h"
#include "test/support/current.h"

TestSuite(runs_inside, .timeout = 30);

/* ------------------------------------------------------------ outside */

Test(runs_inside, outside_of_callbacks_there_is_no_self)
{
	expect_eq(tw_self().id, 0);
	expect_eq(current_run().overruns, 0);
	expect_eq(current_run().closing, false);
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 0);
	rig_advance(&rig, MS);
	expect_eq(tw_self().id, 0);
	rig_close(&rig);
}

static void note_self_in_release(struct probe *probe)
{
	probe->answer = tw_self().id == probe->timer.id;
}

Test(runs_inside, a_release_knows_its_timer)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe fired = PROBE(&rig, 1), cancelled = PROBE(&rig, 2);
	fired.act_in_release = cancelled.act_in_release = note_self_in_release;
	probe_schedule_released(&fired, 0);
	probe_schedule_released(&cancelled, SECOND);
	rig_advance(&rig, MS);
	expect_eq(tw_cancel(rig.service, cancelled.timer), TW_CANCELLED);
	expect_eq(fired.answer, 1);
	expect_eq(cancelled.answer, 1);
	expect_eq(tw_self().id, 0);
	rig_close(&rig);
}

/* A release called inside another timer's callback: the callback is itself again afterwards. */
static void cancel_other_and_compare_self(struct probe *probe)
{
	tw_cancel(probe->rig->service, probe->other->timer);
	probe->answer = tw_self().id == probe->timer.id;
}

Test(runs_inside, self_survives_the_release_of_another)
{
	struct rig rig;
	rig_open(&rig, NULL);
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
	rig_close(&rig);
}

/* ------------------------------------------------------------ cancelling oneself */

static void cancel_self(struct probe *probe)
{
	probe->answer = tw_cancel(probe->rig->service, tw_self());
}

static void cancel_wait_self(struct probe *probe)
{
	probe->answer = tw_cancel_wait(probe->rig->service, tw_self(), TW_FOREVER);
}

Test(runs_inside, cancelling_oneself_says_running)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe.act = cancel_self;
	probe_schedule(&probe, MS);
	rig_advance(&rig, MS);
	expect_eq(probe.answer, TW_RUNNING);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_GONE);
	rig_close(&rig);
}

Test(runs_inside, waiting_for_oneself_says_self)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe.act = cancel_wait_self;
	probe_schedule(&probe, MS);
	rig_advance(&rig, MS);
	expect_eq(probe.answer, TW_SELF);
	rig_close(&rig);
}

Test(runs_inside, a_series_ends_when_it_cancels_itself)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe cancels = PROBE(&rig, 1), waits = PROBE(&rig, 2);
	cancels.act = cancel_self;
	waits.act = cancel_wait_self;
	probe_schedule_every_released(&cancels, rate_of(MS, MS, 0));
	probe_schedule_every_released(&waits, delay_of(MS, MS, 0));
	rig_advance(&rig, SECOND);
	expect_eq(cancels.runs, 1);
	expect_eq(waits.runs, 1);
	expect_released(&cancels, TW_FATE_CANCELLED);
	expect_released(&waits, TW_FATE_CANCELLED);
	expect_eq(stats_of(rig.service).cancelled, 2);
	rig_close(&rig);
}

Test(runs_inside, a_release_that_waits_for_itself_is_told_so)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe fired = PROBE(&rig, 1), cancelled = PROBE(&rig, 2);
	fired.act_in_release = cancelled.act_in_release = cancel_wait_self;
	probe_schedule_released(&fired, MS);
	probe_schedule_released(&cancelled, SECOND);
	rig_advance(&rig, MS);
	expect_eq(tw_cancel(rig.service, cancelled.timer), TW_CANCELLED);
	expect_eq(fired.answer, TW_SELF);
	expect_eq(cancelled.answer, TW_SELF);
	rig_close(&rig);
}

Test(runs_inside, a_release_that_cancels_itself_is_told_that_it_runs)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe.act_in_release = cancel_self;
	probe_schedule_released(&probe, MS);
	rig_advance(&rig, MS);
	expect_eq(probe.answer, TW_RUNNING);
	expect_eq(probe.releases, 1);
	rig_close(&rig);
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

static int answer_inside(void (*act)(struct probe *))
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1), after = PROBE(&rig, 2);
	probe.act = act;
	probe.answer = 12345;
	probe_schedule(&probe, MS);
	probe_schedule(&after, 2 * MS);
	rig_advance(&rig, 2 * MS);
	expect_eq(probe.runs, 1);
	expect_ran_at(&after, RIG_START_NS + 2 * MS);
	rig_close(&rig);
	return probe.answer;
}

Test(runs_inside, advance_is_busy)
{
	expect_eq(answer_inside(advance_nested), -EBUSY);
}

Test(runs_inside, the_clock_cannot_be_advanced)
{
	expect_eq(answer_inside(move_the_clock), -EDEADLK);
}

Test(runs_inside, destroy_would_deadlock)
{
	expect_eq(answer_inside(destroy_the_service), -EDEADLK);
}

Test(runs_inside, close_would_deadlock_in_each_mode)
{
	expect_eq(answer_inside(close_the_service), 0);
}

Test(runs_inside, validate_is_busy_in_the_drivers_own_callback)
{
	expect_eq(answer_inside(validate_the_service), -EBUSY);
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
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1), other = PROBE(&rig, 2);
	probe.act = read_everything;
	probe.other = &other;
	probe_schedule(&probe, MS);
	probe_schedule(&other, 2 * MS);
	rig_advance(&rig, MS);
	expect_eq(probe.answer, 1);
	rig_close(&rig);
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
