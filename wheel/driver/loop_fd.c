#include "wheel/driver/loop_fd.h"

#include "wheel/driver/driver.h"
#include "wheel/run/work.h"

/* Entries that a lane may hold until the next tick, or half its bound. */
enum { MOST_UNREAD = 2048 };

/* What a poll has left undone: for now, and for the next tick. */
static void loop_remember(tw_service *service, const struct tw__poll *poll, size_t budget)
{
	struct tw__loop *loop = &service->driver->loop;
	bool inline_runs = service->executor == &tw__inline_executor;
	bool stopped =
	    tw__any_ready(service) && (poll->done >= budget || (inline_runs && poll->done > 0));
	bool catching_up = tw_exchange_acquire(&service->catching_up, 0);
	loop->at_once = stopped || catching_up || poll->now;
	loop->soon = poll->soon;
}

static void gather(tw_service *service)
{
	bool again = false;
	tw__driver_collect(service);
	uint64_t drained = tw__drain(service, false, &again);
	service->driver->loop.at_once |= again && drained;
	service->driver->loop.soon |= again;
}

/* The instant of what is to do next; 0 means now. */
static uint64_t next_ns(tw_service *service)
{
	const struct tw__loop *loop = &service->driver->loop;
	bool late =
	    /* else for the next tick */
	    service->driver->wheel.late.count && !service->driver->outboxes.refiled;
	if (loop->at_once || late || tw__works_waiting(service))
		return 0;
	struct tw__wheel *wheel = &service->driver->wheel;
	uint64_t tick =
	    tw__earlier(tw__wheel_plan(wheel, TW__PLAN_BUDGET), tw__young_plan(service));
	if (loop->soon || tw__wheel_sweeping(wheel))
		tick = wheel->next;
	return tw__purge_wake_by(service, tw__plan_ns(service, tick));
}

/* No other thread has a lane (gate.h, GATE5). */
static bool alone(tw_service *service)
{
	return tw__queue_owners(&service->queue) == 1;
}

/*
 * Sleeps longer than before: from the barrier on, a thread that brings something earlier rings;
 * what came before is found in the lanes. Returns the plan.
 */
static uint64_t raise_plan(tw_service *service, uint64_t plan_ns)
{
	tw_store_relaxed(&service->gate.plan, plan_ns); /* published with the word (GATE1, GATE4) */
	tw__gate_publish(&service->gate, TW__GATE_PARKED | tw__driver_accepting(service));
	bool sure = alone(service) || tw__gate_barrier(&service->gate);
	uint64_t wake_ns =
	    sure ? plan_ns
		 : tw__earlier(plan_ns, tw__tick_ns(service, service->driver->wheel.next));
	/* GATE2, GATE4; work.h, WORK2 */
	if (tw__driver_any_unread(service) || tw__works_waiting(service)) {
		gather(service);
		wake_ns = tw__earlier(wake_ns, next_ns(service));
	}
	return wake_ns;
}

/* Sets the descriptor for what comes next. */
static void loop_arm(tw_service *service)
{
	if (tw__driver_any_unread(service)) /* callbacks have scheduled */
		gather(service);
	uint64_t wake_ns = next_ns(service);
	bool left_to_batch = service->driver->loop.left_to_batch;
	service->driver->loop.left_to_batch = false;
	/* a thread that brings the timer back looks at its word (wake.h) */
	if (left_to_batch || wake_ns > tw_load_relaxed(&service->gate.plan))
		wake_ns = raise_plan(service, wake_ns);
	/* GATE4: not later than what was published */
	tw_store_relaxed(&service->gate.plan, wake_ns);
	tw__alarm_set(&service->driver->loop.alarm, wake_ns);
}

static bool lanes_want_draining(tw_service *service)
{
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next) {
		uint64_t head = tw__lane_head(lane), tail = tw_load_acquire(&lane->tail);
		uint64_t urgent = tw_load_relaxed(&lane->urgent);
		uint64_t most = lane->bound / 2 < MOST_UNREAD ? lane->bound / 2 : MOST_UNREAD;
		bool any_urgent = tail != head && (int64_t)(urgent - head) > 0;
		if (any_urgent || tail - head > most)
			return true;
	}
	return false;
}

/*
 * This tick has been turned through, and nothing that was left, or came since, may be due before
 * the next. Most calls of a loop then cost a reading of the clock.
 */
static bool all_is_done(tw_service *service)
{
	const struct tw__loop *loop = &service->driver->loop;
	if (!service->clock->ops->runs || service->time.steps || loop->at_once || loop->soon)
		return false;
	uint64_t now_ns = tw__driver_now(service);
	return tw__ticks_down(service, now_ns - service->time.start_ns) <
		   service->driver->wheel.next &&
	       !tw__purging(service) && service->driver->wheel.late.count == 0 &&
	       !tw_load_relaxed(&service->submitted->returned) &&
	       !tw_load_relaxed(&service->catching_up) && !tw__any_ready(service) &&
	       !tw__works_waiting(service) && !lanes_want_draining(service);
}

size_t tw__loop_advance(tw_service *service, struct tw__local *local, size_t budget)
{
	TW_ASSERT_DRIVER(service);
	bool open = tw_load_relaxed(&service->driver->loop.open); /* written under `driving` */
	if (!open && all_is_done(service))
		return 0;
	if (open)
		service->driver->park.woken |=
		    tw__gate_arm_bell(&service->gate); /* GATE3: before the lanes are looked at */
	struct tw__poll poll = tw__poll(service, local, budget);
	loop_remember(service, &poll, budget);
	tw__purge_look(service);
	if (open)
		loop_arm(service);
	return poll.done;
}

uint64_t tw__loop_next_tick_ns(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	struct tw__wheel *wheel = &service->driver->wheel;
	gather(service);
	uint64_t tick = tw__earlier(tw__wheel_plan(wheel, UINT32_MAX), tw__young_plan(service));
	if (service->driver->loop.soon || tw__works_waiting(service) || tick < wheel->next)
		tick = wheel->next;
	return tw__plan_ns(service, tick);
}

/* ------------------------------------------------------------------- public */

static int check_manual(const char *call, const tw_service *service)
{
	int r = tw__service_check_in(call, service);
	if (!r && service->threaded)
		r = tw__refuse(-EINVAL, call,
			       "the service has a tick thread: set drive to TW_DRIVE_MANUAL");
	return r;
}

/* The instant of a due timer; the clock may have been set back since the last advance. */
static uint64_t due_since(const tw_service *service)
{
	return tw__earlier(service->driver->last_now_ns, tw__clock_read(service));
}

int tw_service_next_expiry(tw_service *service, uint64_t *out_ns)
{
	int r = out_ns ? check_manual(__func__, service) : tw__invalid("out_ns is NULL");
	if (r)
		return r;
	if (pthread_mutex_trylock(&service->driving))
		return -EBUSY;
	r = tw_load_acquire(&service->phase.closed) ? -ESHUTDOWN : 0;
	if (!r) {
		gather(service);
		tw__purge_look(service);
		uint64_t at_ns = next_ns(service);
		*out_ns = at_ns ? at_ns : due_since(service);
	}
	pthread_mutex_unlock(&service->driving);
	return r;
}

/* Makes the descriptor, with `driving` held. */
static int open_fd(tw_service *service)
{
	if (tw_load_acquire(&service->phase.closed))
		return -ESHUTDOWN;
	if (!tw__local_of(service)) /* an owner, as alone() takes for granted */
		return -ENOMEM;
	int r =
	    tw__alarm_open(&service->driver->loop.alarm, service->clock->ops->id, &service->gate);
	if (r)
		return r;
	tw__gate_arm_bell(&service->gate);
	gather(service);
	loop_arm(service);
	tw_store_release(&service->driver->loop.open, true);
	return 0;
}

int tw_service_fd(tw_service *service)
{
	int r = check_manual(__func__, service);
	if (r)
		return r;
	if (service->clock->ops->id < 0)
		return tw__invalid(
		    "the service has a manual clock, which no descriptor can wait for");
	if (tw_load_acquire(&service->driver->loop.open))
		return service->driver->loop.alarm.epoll_fd;
	if (pthread_mutex_trylock(&service->driving))
		return -EBUSY;
	r = tw_load_relaxed(&service->driver->loop.open) ? 0 : open_fd(service);
	pthread_mutex_unlock(&service->driving);
	return r ? r : service->driver->loop.alarm.epoll_fd;
}
