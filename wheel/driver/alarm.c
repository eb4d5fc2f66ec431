#include "wheel/driver/alarm.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "mpsc/base/assert.h"
#include "mpsc/base/process.h"

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
