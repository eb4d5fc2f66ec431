/*
 * The tick thread: when to poll next.
 *
 * **Open**, while there is much traffic: it polls every tick, publishes a new sequence number each
 * time (drain.c), and nobody wakes it. **Parked**: it sleeps until the next live timer, and
 * producers that bring an earlier one ring (gate.h). It leaves young lanes unread until something
 * in them comes near.
 *
 * Where timers are due in one tick after the other it stays open, too: parked, it would wake as
 * often, and pay for a barrier each time. Once it has slept a single tick and found something to
 * do, it expects that of the next tick.
 */
#include <sys/prctl.h>

#include "wheel/driver/driver.h"
#include "wheel/run/run.h"
#include "mpsc/base/process.h"
#include "wheel/run/work.h"

enum { QUIET_POLLS = 8 }; /* after this many quiet polls in a row it parks */

static uint64_t plan_ns_of(const tw_service *service, uint64_t tick)
{
	return tick == UINT64_MAX ? UINT64_MAX : tw__tick_ns(service, tick);
}

uint64_t tw__driver_plan(tw_service *service, unsigned budget)
{
	uint64_t tick = tw__wheel_plan(&service->driver->wheel, budget);
	return plan_ns_of(service, tw__earlier(tick, tw__young_plan(service)));
}

bool tw__driver_park(tw_service *service, uint64_t plan_ns)
{
	tw_store_relaxed(&service->gate.plan, plan_ns); /* published with the word (GATE1, GATE4) */
	tw__driver_publish(service, TW__GATE_PARKED);
	/* counted after that: GATE5 */
	return tw__queue_owners(&service->queue) == 1 || tw__gate_barrier(&service->gate);
}

/* Called after the bell is armed (gate.h, GATE3). */
static bool requested(tw_service *service)
{
	return (tw_load_seq_cst(&service->phase.closing) &&
		!tw_load_relaxed(&service->phase.closed)) ||
	       tw_load_seq_cst(&service->driver->tick_thread.stopping) ||
	       tw_load_seq_cst(&service->driver->tick_thread.polls_wanted) !=
		   tw_load_relaxed(&service->driver->tick_thread.polls_done) ||
	       tw__works_waiting(service);
}

/*
 * Gets ready to sleep until the next live timer, or until memory is to go back. The deadline; 0:
 * poll again.
 */
static uint64_t park(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	uint64_t plan_ns = tw__purge_wake_by(service, tw__driver_plan(service, TW__PLAN_BUDGET));
	tw__gate_arm_bell(&service->gate);
	bool sure = tw__driver_park(service, plan_ns);
	if (tw__driver_any_unread(service) ||
	    plan_ns_of(service, tw__young_plan(service)) < plan_ns || tw__driver_collect(service) ||
	    requested(service))
		return 0;
	/*
	 * Cancels since the last look, which did not ring, and their look at the word are another
	 * pair for the barrier (GATE2). Without membarrier the next that rings will do.
	 */
	if (tw__sweep_wanted(service)) {
		service->driver->park.woken = true;
		return 0;
	}
	if (!sure)
		return tw__earlier(tw__next_tick_ns(service), plan_ns);
	return service->clock->ops->runs ? plan_ns : UINT64_MAX;
}

/* When to poll next, and the gate is set accordingly. 0: immediately. */
static uint64_t choose_sleep(tw_service *service, const struct tw__poll *poll)
{
	TW_ASSERT_DRIVER(service);
	struct tw__park *park_of = &service->driver->park;
	uint64_t busy = TW__BUSY_PUSHES * (poll->elapsed ? poll->elapsed : 1);
	park_of->quiet_polls = poll->pushed >= busy ? 0 : park_of->quiet_polls + 1;
	if (poll->elapsed)
		park_of->fires_each_tick = poll->done && park_of->slept_a_tick;
	if (poll->now)
		return 0;
	bool quiet = park_of->quiet_polls > QUIET_POLLS && !park_of->fires_each_tick;
	if (!poll->soon && !tw__wheel_sweeping(&service->driver->wheel) &&
	    (quiet || !service->time.published))
		return park(service);
	tw__gate_arm_bell(&service->gate);
	return requested(service) ? 0 : tw__next_tick_ns(service);
}

/* A poll that was asked for is over: tells those who wait (a manual clock, close). */
static void tell_polled(tw_service *service, uint32_t wanted)
{
	if (tw_load_relaxed(&service->driver->tick_thread.polls_done) == wanted)
		return;
	tw_store_seq_cst(&service->driver->tick_thread.polls_done, wanted);
	tw__futex_wake(&service->driver->tick_thread.polls_done, INT32_MAX);
}

static void sleep_until(tw_service *service, uint64_t deadline_ns)
{
	/* a clock that stands still: try again in a tick of real time */
	if (!service->clock->ops->runs && deadline_ns != UINT64_MAX)
		deadline_ns = tw_clock_now(tw_clock_monotonic()) + service->time.tick_ns;
	if (service->clock->ops->by_alarm) {
		tw__alarm_set(&service->driver->loop.alarm, deadline_ns);
		tw__alarm_wait(&service->driver->loop.alarm);
	} else {
		tw__gate_sleep(&service->gate, deadline_ns);
	}
	tw_bump(&service->driver->counters.wakeups, 1);
	service->driver->park.woken = true;
}

static void *tick_thread(void *arg)
{
	tw_service *service = arg;
	prctl(PR_SET_TIMERSLACK, 1UL);
	struct tw__local *local = tw__local_of(service);
	if (local && !tw__local_ready_to_run(local)) /* now, so that inline runs need no memory */
		local = NULL;
	if (local)
		tw_store_relaxed(&local->of_service, 1); /* it publishes the close itself */
	tw_store_seq_cst(&service->driver->tick_thread.started, local ? 1 : 2);
	tw__futex_wake(&service->driver->tick_thread.started, 1);
	while (local) {
		pthread_mutex_lock(&service->driving);
		if (tw_load_acquire(&service->driver->tick_thread.stopping))
			break;
		uint32_t wanted = tw_load_seq_cst(&service->driver->tick_thread.polls_wanted);
		if (tw_load_acquire(&service->phase.closing))
			tw__driver_publish_closed(service);
		tw__driver_publish(service, service->time.published ? TW__GATE_OPEN : 0);
		struct tw__poll poll = tw__poll(service, local, SIZE_MAX);
		if (!poll.now)
			tell_polled(service, wanted);
		uint64_t deadline_ns = choose_sleep(service, &poll);
		service->driver->park.slept_a_tick = deadline_ns == tw__next_tick_ns(service);
		pthread_mutex_unlock(&service->driving);
		if (deadline_ns)
			sleep_until(service, deadline_ns);
	}
	if (local)
		pthread_mutex_unlock(&service->driving);
	tw_store_seq_cst(&service->phase.stopped, 1);
	tw_add_seq_cst(&service->driver->tick_thread.polls_done,
		       1); /* the thread that waits for a poll looks at `stopped` then */
	tw__futex_wake(&service->driver->tick_thread.polls_done, INT32_MAX);
	tw__futex_wake(&service->phase.stopped, INT32_MAX);
	return NULL;
}

int tw__driver_start(tw_service *service)
{
	service->driver->park.quiet_polls = QUIET_POLLS;
	int r = tw__spawn(&service->driver->tick_thread.thread, &service->config, "-tick", true,
			  tick_thread, service);
	if (r)
		return r;
	while (tw_load_acquire(&service->driver->tick_thread.started) == 0)
		tw__futex_wait(&service->driver->tick_thread.started, 0, UINT64_MAX);
	if (tw_load_acquire(&service->driver->tick_thread.started) == 1)
		return 0;
	pthread_join(service->driver->tick_thread.thread, NULL);
	return -ENOMEM;
}

bool tw__driver_await_poll(tw_service *service, uint64_t deadline_ns)
{
	uint32_t ticket = tw_add_seq_cst(&service->driver->tick_thread.polls_wanted, 1) + 1;
	tw__gate_ring(&service->gate);
	for (;;) {
		uint32_t done = tw_load_acquire(&service->driver->tick_thread.polls_done);
		if ((int32_t)(done - ticket) >= 0 || tw_load_acquire(&service->phase.stopped))
			return true;
		if (!tw__futex_wait(&service->driver->tick_thread.polls_done, done, deadline_ns))
			return false;
	}
}

bool tw__driver_stop(tw_service *service, uint64_t deadline_ns)
{
	tw_store_seq_cst(&service->driver->tick_thread.stopping, 1);
	tw__gate_ring(&service->gate);
	while (!tw_load_acquire(&service->phase.stopped))
		if (!tw__futex_wait(&service->phase.stopped, 0, deadline_ns))
			return false;
	pthread_join(service->driver->tick_thread.thread, NULL);
	return true;
}
