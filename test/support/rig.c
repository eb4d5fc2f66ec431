/* The rig and its probes. */
#include "rig.h"
#include "test/support/current.h"

#include <stdlib.h>

struct tw_service_config rig_config(void)
{
	return (struct tw_service_config){
	    .size = sizeof(struct tw_service_config),
	    .drive = TW_DRIVE_MANUAL,
	    .executor = tw_executor_inline(),
	};
}

void rig_open(struct rig *rig, const struct tw_service_config *cfg)
{
	*rig = (struct rig){.lock = PTHREAD_MUTEX_INITIALIZER};
	expect_eq(tw_clock_manual_create(&rig->clock, RIG_START_NS), 0);
	struct tw_service_config mine = cfg ? *cfg : rig_config();
	mine.clock = rig->clock;
	rig->tick_ns = mine.tick_ns ? mine.tick_ns : MS;
	expect_eq(tw_service_create(&rig->service, &mine), 0);
}

void rig_open_real(struct rig *rig, struct tw_service_config cfg)
{
	*rig = (struct rig){.lock = PTHREAD_MUTEX_INITIALIZER,
			    .clock = tw_clock_monotonic(),
			    .tick_ns = MS,
			    .is_real = true};
	cfg.size = sizeof cfg;
	expect_eq(tw_service_create(&rig->service, &cfg), 0);
}

void rig_close(struct rig *rig)
{
	expect_sound(rig->service);
	expect_eq(tw_service_destroy(rig->service), 0);
	if (!rig->is_real)
		expect_eq(tw_clock_manual_destroy(rig->clock), 0);
	free(rig->events);
}

static void never(void *arg)
{
}

void rig_map_slots(const struct rig *rig, int n)
{
	tw_timer *timers = calloc((size_t)n, sizeof *timers);
	cr_assert_not_null(timers);
	for (int i = 0; i < n; i++)
		expect_eq(tw_schedule(rig->service, HOUR, never, NULL, &timers[i]), 0);
	for (int i = 0; i < n; i++)
		expect_eq(tw_cancel(rig->service, timers[i]), TW_CANCELLED);
	free(timers);
}

uint64_t rig_now(const struct rig *rig)
{
	return tw_clock_now(rig->clock);
}

void rig_advance(struct rig *rig, uint64_t ns)
{
	expect_eq(tw_clock_manual_advance_by(rig->clock, ns), 0);
}

void rig_advance_to(struct rig *rig, uint64_t ns)
{
	expect_eq(tw_clock_manual_advance_by(rig->clock, ns - tw_clock_now(rig->clock)), 0);
}

uint64_t rig_tick_of(const struct rig *rig, uint64_t ns)
{
	return (ns + rig->tick_ns - 1) / rig->tick_ns * rig->tick_ns;
}

static void note_event(struct rig *rig, struct event event)
{
	pthread_mutex_lock(&rig->lock);
	if (rig->ran == rig->room) {
		rig->room = rig->room ? 2 * rig->room : 64;
		rig->events = realloc(rig->events, rig->room * sizeof(*rig->events));
		if (!rig->events)
			abort();
	}
	rig->events[rig->ran++] = event;
	pthread_mutex_unlock(&rig->lock);
}

void probe_run(void *arg)
{
	struct probe *probe = arg;
	struct event event = {
	    .id = probe->id,
	    .at_ns = rig_now(probe->rig),
	    .overruns = current_run().overruns,
	    .self = tw_self().id,
	    .closing = current_run().closing,
	    .late_ns = current_run().late_ns,
	    .thread = pthread_self(),
	};
	note_event(probe->rig, event);
	probe->ran_at_ns = event.at_ns;
	probe->overruns += event.overruns;
	if (probe->act)
		probe->act(probe);
	atomic_fetch_add(&probe->runs, 1);
}

void probe_release(void *arg, enum tw_fate fate)
{
	struct probe *probe = arg;
	if (probe->act_in_release)
		probe->act_in_release(probe);
	probe->released_on = pthread_self();
	atomic_store(&probe->fate, (int)fate);
	atomic_fetch_add(&probe->releases, 1);
}

void probe_schedule(struct probe *probe, uint64_t delay_ns)
{
	expect_eq(tw_schedule(probe->rig->service, delay_ns, probe_run, probe, &probe->timer), 0);
}

void probe_schedule_at(struct probe *probe, uint64_t deadline_ns)
{
	expect_eq(tw_schedule_at(probe->rig->service, deadline_ns, probe_run, probe, &probe->timer),
		  0);
}

struct tw_task probe_task(struct probe *probe)
{
	return (struct tw_task){
	    .size = sizeof(struct tw_task),
	    .fn = probe_run,
	    .arg = probe,
	    .release = probe_release,
	};
}

void probe_schedule_task(struct probe *probe, const struct tw_task *task)
{
	expect_eq(tw_schedule_task(probe->rig->service, task, &probe->timer), 0);
}

void probe_schedule_released(struct probe *probe, uint64_t delay_ns)
{
	struct tw_task task = probe_task(probe);
	task.when_ns = delay_ns;
	expect_eq(tw_schedule_task(probe->rig->service, &task, &probe->timer), 0);
}

void probe_schedule_every(struct probe *probe, struct tw_period period)
{
	expect_eq(tw_schedule_every(probe->rig->service, &period, probe_run, probe, &probe->timer),
		  0);
}

struct tw_period rate_of(uint64_t first_ns, uint64_t period_ns, uint64_t count)
{
	return (struct tw_period){
	    .size = sizeof(struct tw_period),
	    .first_ns = first_ns,
	    .period_ns = period_ns,
	    .mode = TW_FIXED_RATE,
	    .count = count,
	};
}

struct tw_period delay_of(uint64_t first_ns, uint64_t period_ns, uint64_t count)
{
	struct tw_period period = rate_of(first_ns, period_ns, count);
	period.mode = TW_FIXED_DELAY;
	return period;
}

void expect_ran_at(const struct probe *probe, uint64_t at_ns)
{
	expect_eq(probe->runs, 1);
	expect_eq(probe->ran_at_ns, at_ns);
}

void expect_released(const struct probe *probe, enum tw_fate fate)
{
	expect_eq(probe->releases, 1);
	expect_eq(probe->fate, fate);
}

void expect_ids_ascend(const struct rig *rig)
{
	for (size_t i = 1; i < rig->ran; i++)
		expect_lt(rig->events[i - 1].id, rig->events[i].id);
}
