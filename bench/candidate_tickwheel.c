/*
 * Ours, with all defaults: tick thread, pool. "tickwheel" gives delays; "tickwheel-at" gives
 * deadlines counted from the caller's loop time, as a server that keeps one would.
 * "tickwheel-manual" is the same without a thread: the one caller drives the service between its
 * operations (TW_DRIVE_MANUAL), and callbacks run inline. "tickwheel-group" is the first with each
 * timer a member of a group: sixteen slots side by side share one. "tickwheel-named" is the first
 * with a name for each timer.
 * "tickwheel-persistent" has a persistent timer for each slot, made beforehand, which is armed and
 * disarmed; deadlines as "tickwheel-at".
 */
#include <stdlib.h>

#include "bench/measure.h"
#include "bench/candidate.h"
#include "tickwheel.h"
#include "wheel/core/service.h"
#include "wheel/driver/driver.h"

struct caller {
	_Alignas(64) uint64_t loop_ns;
};

/* What the user of a persistent timer keeps. */
struct connection {
	_Alignas(16) tw_timer timer;
	_Atomic(void *) arg; /* of the callback; NULL: it has run since it was armed */
};

struct ours {
	tw_service *service;
	tw_timer *timers;
	tw_group *groups; /* NULL: timers without */
	struct caller *callers;
	struct connection *connections; /* NULL: timers that are not persistent */
	_Atomic(expiry_fn *) fn;        /* of all connections */
};

enum { MEMBERS = 16 };

static void destroy(void *me)
{
	struct ours *self = me;
	tw_service_destroy(self->service);
	free(self->timers);
	free(self->groups);
	free(self->connections);
	free(self->callers);
	free(self);
}

/* Defaults, except that the service holds more timers. */
static int create_service(tw_service **service, uint32_t slots, enum tw_drive drive)
{
	const uint32_t default_max_timers = UINT32_C(1) << 24;
	struct tw_service_config config = {.size = sizeof config, .drive = drive};
	if (drive == TW_DRIVE_MANUAL)
		config.executor = tw_executor_inline();
	if (slots > default_max_timers)
		config.max_timers = slots;
	return tw_service_create(service, &config);
}

static void *create_driven(const struct candidate_setup *setup, enum tw_drive drive)
{
	struct ours *self = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	self->timers = touched_array(setup->slots, sizeof *self->timers);
	self->callers = touched_array(setup->threads, sizeof *self->callers);
	if (!self->timers || !self->callers ||
	    create_service(&self->service, setup->slots, drive) < 0) {
		destroy(self);
		return NULL;
	}
	for (unsigned thread = 0; thread < setup->threads; thread++)
		self->callers[thread].loop_ns = tw_service_now(self->service);
	return self;
}

static void *create(const struct candidate_setup *setup)
{
	return create_driven(setup, TW_DRIVE_THREAD);
}

static void *create_manual(const struct candidate_setup *setup)
{
	return create_driven(setup, TW_DRIVE_MANUAL);
}

static void *create_group(const struct candidate_setup *setup)
{
	struct ours *self = create_driven(setup, TW_DRIVE_THREAD);
	uint32_t groups = setup->slots / MEMBERS + 1;
	if (self)
		self->groups = touched_array(groups, sizeof *self->groups);
	for (uint32_t i = 0; self && i < groups; i++)
		if (!self->groups || tw_group_create(&self->groups[i], self->service) < 0) {
			destroy(self);
			self = NULL;
		}
	return self;
}

/* Of all connections: what they call, and whom for. */
static struct ours *persistent;

static void run_connection(void *arg)
{
	struct connection *connection = arg;
	expiry_fn *fn = tw_load_relaxed(&persistent->fn);
	fn(tw_exchange_seq_cst(&connection->arg, NULL));
}

static void *create_persistent(const struct candidate_setup *setup)
{
	struct ours *self = persistent = create_driven(setup, TW_DRIVE_THREAD);
	if (self)
		self->connections = touched_array(setup->slots, sizeof *self->connections);
	for (uint32_t i = 0; self && i < setup->slots; i++) {
		struct tw_task task = {.size = sizeof task,
				       .fn = run_connection,
				       .when_ns = TW_NEVER,
				       .flags = TW_TASK_PERSISTENT};
		if (self->connections)
			task.arg = &self->connections[i];
		if (!task.arg ||
		    tw_schedule_task(self->service, &task, &self->connections[i].timer) < 0) {
			destroy(self);
			self = NULL;
		}
	}
	return self;
}

static int schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn,
		    void *arg)
{
	(void)thread;
	struct ours *self = me;
	return tw_schedule(self->service, delay_ns, fn, arg, &self->timers[slot]);
}

static int schedule_at(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn,
		       void *arg)
{
	struct ours *self = me;
	uint64_t deadline_ns = self->callers[thread].loop_ns + delay_ns;
	return tw_schedule_at(self->service, deadline_ns, fn, arg, &self->timers[slot]);
}

static int schedule_member(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns,
			   expiry_fn *fn, void *arg)
{
	(void)thread;
	struct ours *self = me;
	struct tw_task task = {.size = sizeof task,
			       .fn = fn,
			       .arg = arg,
			       .when_ns = delay_ns,
			       .group = self->groups[slot / MEMBERS]};
	return tw_schedule_task(self->service, &task, &self->timers[slot]);
}

static int schedule_named(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns,
			  expiry_fn *fn, void *arg)
{
	(void)thread;
	struct ours *self = me;
	struct tw_task task = {
	    .size = sizeof task, .fn = fn, .arg = arg, .when_ns = delay_ns, .name = "request"};
	return tw_schedule_task(self->service, &task, &self->timers[slot]);
}

static int arm_persistent(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns,
			  expiry_fn *fn, void *arg)
{
	struct ours *self = me;
	struct connection *connection = &self->connections[slot];
	if (tw_load_relaxed(&self->fn) != fn)
		tw_store_relaxed(&self->fn, fn);
	tw_store_relaxed(&connection->arg, arg);
	return tw_reset_at(self->service, connection->timer,
			   self->callers[thread].loop_ns + delay_ns);
}

static int every(void *me, uint32_t slot, uint64_t period_ns, expiry_fn *fn, void *arg)
{
	struct ours *self = me;
	struct tw_period period = {
	    .size = sizeof period, .first_ns = period_ns, .period_ns = period_ns};
	return tw_schedule_every(self->service, &period, fn, arg, &self->timers[slot]);
}

static bool cancel(void *me, uint32_t slot)
{
	struct ours *self = me;
	return tw_cancel(self->service, self->timers[slot]) == TW_CANCELLED;
}

static bool disarm(void *me, uint32_t slot)
{
	struct ours *self = me;
	return tw_disarm(self->service, self->connections[slot].timer) == TW_CANCELLED;
}

static bool touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	(void)thread;
	struct ours *self = me;
	return tw_reset(self->service, self->timers[slot], delay_ns) == 0;
}

static bool touch_at(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	struct ours *self = me;
	uint64_t deadline_ns = self->callers[thread].loop_ns + delay_ns;
	return tw_reset_at(self->service, self->timers[slot], deadline_ns) == 0;
}

/* A reset arms a timer that has just run; here that is taken back. */
static bool touch_persistent(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	struct ours *self = me;
	struct connection *connection = &self->connections[slot];
	uint64_t deadline_ns = self->callers[thread].loop_ns + delay_ns;
	if (!tw_load_relaxed(&connection->arg) ||
	    tw_reset_at(self->service, connection->timer, deadline_ns))
		return false;
	if (tw_load_seq_cst(&connection->arg))
		return true;
	(void)tw_disarm(self->service, connection->timer);
	return false;
}

/* The monotonic clock is the service's own: its reading is on the scale of deadlines. */
static void turn_at(void *me, unsigned thread, uint64_t at_ns)
{
	struct ours *self = me;
	self->callers[thread].loop_ns = at_ns;
}

static void turn_manual(void *me, unsigned thread, uint64_t at_ns)
{
	struct ours *self = me;
	turn_at(me, thread, at_ns);
	/* a number of callbacks: there is no error but misuse */
	(void)tw_service_advance(self->service, TW_NO_LIMIT);
}

/*
 * In the next tick: when the next timer is due is not asked, and so this is no candidate of the
 * idle workload.
 */
static uint64_t next_turn_manual(void *me)
{
	struct ours *self = me;
	return self->callers[0].loop_ns + 1;
}

static void view(void *me, struct candidate_view *out)
{
	struct ours *self = me;
	struct tw_service_stats stats = {.size = sizeof stats};
	*out = (struct candidate_view){0};
	if (tw_service_stats(self->service, &stats) < 0)
		return;
	out->pending = stats.pending;
	out->user_bytes = self->connections ? sizeof(struct connection) : sizeof(tw_timer);
	out->wakeups = stats.wakeups;
	out->ticks = stats.ticks;
	out->tick_cpu_ns = stats.tick_cpu_ns;
	out->tick_cpu_max_ns = stats.tick_cpu_max_ns;
	tw_store_relaxed(&self->service->driver->counters.tick_cpu_max_ns,
			 0); /* of each phase its own; no such call is public */
}

static uint64_t missed(void)
{
	struct tw_run_info run = TW_INIT(tw_run_info);
	tw_current(&run);
	return run.overruns;
}

const struct candidate candidate_tickwheel = {
    .name = "tickwheel",
    .what = "this library, tick thread and pool, delays",
    .workloads = ON_ALL,
    .create = create,
    .destroy = destroy,
    .schedule = schedule,
    .every = every,
    .missed = missed,
    .exact_series = true,
    .cancel = cancel,
    .touch = touch,
    .view = view,
};

const struct candidate candidate_tickwheel_group = {
    .name = "tickwheel-group",
    .what = "this library, tick thread and pool, delays, members of groups",
    .peer = true,
    .workloads = ON_CHURN | ON_REQUEST,
    .create = create_group,
    .destroy = destroy,
    .schedule = schedule_member,
    .cancel = cancel,
    .view = view,
};

const struct candidate candidate_tickwheel_named = {
    .name = "tickwheel-named",
    .what = "this library, tick thread and pool, delays, a name for each timer",
    .peer = true,
    .workloads = ON_REQUEST,
    .create = create,
    .destroy = destroy,
    .schedule = schedule_named,
    .cancel = cancel,
    .view = view,
};

/* Idle, memory and series are the same as with delays. */
const struct candidate candidate_tickwheel_at = {
    .name = "tickwheel-at",
    .what = "this library, tick thread and pool, deadlines from a cached time",
    .workloads = ON_ALL & ~(ON_IDLE | ON_MEMORY | ON_PERIODIC),
    .spared = ON_RETENTION | ON_PACED,
    .create = create,
    .destroy = destroy,
    .schedule = schedule_at,
    .cancel = cancel,
    .touch = touch_at,
    .turn = turn_at,
    .view = view,
};

const struct candidate candidate_tickwheel_persistent = {
    .name = "tickwheel-persistent",
    .what = "this library, a persistent timer for each slot, deadlines from a cached time",
    .workloads = ON_CHURN | ON_REQUEST | ON_TOUCH | ON_SERVER,
    .create = create_persistent,
    .destroy = destroy,
    .schedule = arm_persistent,
    .cancel = disarm,
    .touch = touch_persistent,
    .turn = turn_at,
    .view = view,
};

const struct candidate candidate_tickwheel_manual = {
    .name = "tickwheel-manual",
    .what = "this library, driven by its one caller, delays",
    .bare = true,
    .peer = true,
    .workloads = ON_ALL & ~ON_IDLE,
    .spared = ON_FIRE | ON_MEMORY | ON_STORM | ON_SERVER | ON_PERIODIC,
    .create = create_manual,
    .destroy = destroy,
    .schedule = schedule,
    .every = every,
    .missed = missed,
    .exact_series = true,
    .cancel = cancel,
    .touch = touch,
    .turn = turn_manual,
    .next_turn_ns = next_turn_manual,
    .view = view,
};
