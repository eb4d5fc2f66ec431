/*
 * A driver that a loop of the user's calls: when it is to be called, and the descriptor that says
 * so; and the alarm, which a tick thread uses too. Calls poll.c and park.c.
 */
#include "wheel/driver/loop_fd.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "mpsc/base/process.h"
#include "wheel/driver/driver.h"
#include "wheel/run/work.h"

/* ---------------------------------------------------------------- the alarm */

void tw__alarm_init(struct tw__alarm *alarm)
{
	*alarm = (struct tw__alarm){-1, -1, -1, UINT64_MAX};
}

static bool alarm_watch(struct tw__alarm *alarm, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	return epoll_ctl(alarm->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

tw_cold int tw__alarm_open(struct tw__alarm *alarm, int clock_id, struct tw__gate *gate)
{
	struct tw__alarm new = {.set_ns = UINT64_MAX};
	new.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	new.timer_fd = timerfd_create(clock_id, TFD_CLOEXEC | TFD_NONBLOCK);
	new.bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	bool all = new.epoll_fd >= 0 && new.timer_fd >= 0 && new.bell_fd >= 0;
	if (!all || !alarm_watch(&new, new.timer_fd) || !alarm_watch(&new, new.bell_fd)) {
		int error = errno;
		tw__alarm_close(&new);
		return -error;
	}
	*alarm = new;
	tw__gate_ring_on(gate, alarm->bell_fd);
	return 0;
}

void tw__alarm_close(struct tw__alarm *alarm)
{
	TW__UNCANCELLED;
	const int fds[] = {alarm->epoll_fd, alarm->timer_fd, alarm->bell_fd};
	for (unsigned i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	tw__alarm_init(alarm);
}

void tw__alarm_set(struct tw__alarm *alarm, uint64_t instant_ns)
{
	TW_ASSERT(alarm->timer_fd >= 0);
	if (alarm->set_ns == instant_ns)
		/* if it has passed, the descriptor is readable still: nobody reads it */
		return;
	struct itimerspec at = {0}; /* disarmed */
	if (instant_ns != UINT64_MAX) {
		at.it_value.tv_sec = (time_t)(instant_ns / 1000000000u);
		at.it_value.tv_nsec = instant_ns ? (long)(instant_ns % 1000000000u) : 1;
	}
	timerfd_settime(alarm->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
	alarm->set_ns = instant_ns;
}

void tw__alarm_wait(struct tw__alarm *alarm)
{
	TW_ASSERT(alarm->epoll_fd >= 0);
	struct epoll_event event;
	epoll_wait(alarm->epoll_fd, &event, 1, -1);
}

/* ----------------------------------------------------------------- the loop */

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
	struct tw__driver *driver = service->driver;
	/* what was refiled is for the next tick */
	bool late = driver->wheel.late.count && !driver->outboxes.refiled;
	if (driver->loop.at_once || late || tw__works_waiting(service))
		return 0;
	uint64_t plan_ns = tw__driver_plan(service, TW__PLAN_BUDGET);
	if (driver->loop.soon || tw__wheel_sweeping(&driver->wheel))
		plan_ns = tw__next_tick_ns(service);
	return tw__purge_wake_by(service, plan_ns);
}

/*
 * Sleeps longer than before: from the barrier on, a thread that brings something earlier rings;
 * what came before is found in the lanes. Returns the plan.
 */
static uint64_t raise_plan(tw_service *service, uint64_t plan_ns)
{
	uint64_t wake_ns = tw__driver_park(service, plan_ns)
			       ? plan_ns
			       : tw__earlier(plan_ns, tw__next_tick_ns(service));
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
	       service->driver->wheel.late.count == 0 && !tw__purging(service) &&
	       !tw_load_relaxed(&service->submitted->returned) &&
	       !tw_load_relaxed(&service->catching_up) && !tw__works_waiting(service) &&
	       !lanes_want_draining(service);
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
	if (open)
		loop_arm(service);
	return poll.done;
}

uint64_t tw__loop_next_tick_ns(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	gather(service);
	bool soon = service->driver->loop.soon || tw__works_waiting(service);
	return soon ? tw__next_tick_ns(service) : tw__driver_plan(service, UINT32_MAX);
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
		uint64_t at_ns = next_ns(service);
		/* due; the clock may have been set back since the last advance */
		*out_ns = at_ns
			      ? at_ns
			      : tw__earlier(service->driver->last_now_ns, tw__clock_read(service));
	}
	pthread_mutex_unlock(&service->driving);
	return r;
}

/* Makes the descriptor, with `driving` held. */
static int open_fd(tw_service *service)
{
	if (tw_load_acquire(&service->phase.closed))
		return -ESHUTDOWN;
	if (!tw__local_of(service)) /* an owner, as GATE5 takes for granted */
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
