/* Timers in an epoll loop of one's own: no tick thread, no pool; callbacks run in the loop. Another thread schedules, too. */
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tickwheel.h"

struct loop {
	tw_service *timers;
	int beats, greetings;
};

static void on_beat(void *arg)
{
	struct loop *loop = arg;
	printf("beat %d\n", ++loop->beats);
}

static void on_greeting(void *arg)
{
	struct loop *loop = arg;
	printf("a greeting from the other thread\n");
	loop->greetings++; /* no lock: callbacks run in the loop */
}

/* Its timer is earlier than what the loop sleeps for, so the loop is woken to see to it. */
static void *other_thread(void *arg)
{
	struct loop *loop = arg;
	tw_schedule(loop->timers, 10 * TW_MILLISECOND, on_greeting, loop, NULL);
	return NULL;
}

static int run(struct loop *loop)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = loop->timers};
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC), timer_fd = tw_fd(loop->timers);
	if (epoll_fd < 0 || timer_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &event) != 0)
		return -1;
	while (loop->beats < 5 || loop->greetings < 1) {
		if (epoll_wait(epoll_fd, &event, 1, -1) != 1) /* no timeout: the descriptor knows when */
			continue;
		if (event.data.ptr == loop->timers && tw_advance(loop->timers, TW_NO_LIMIT) < 0)
			break;
		/* else: a socket of this loop */
	}
	close(epoll_fd);
	return loop->beats == 5 && loop->greetings == 1 ? 0 : -1;
}

int main(void)
{
	struct loop loop = {0};
	struct tw_service_config config = {
	    .size = sizeof(config), .drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()};
	struct tw_period period = {
	    .size = sizeof(period), .first_ns = 20 * TW_MILLISECOND, .period_ns = 20 * TW_MILLISECOND, .count = 5};
	pthread_t other;
	if (tw_service_create(&loop.timers, &config) != 0 ||
	    tw_schedule_every(loop.timers, &period, on_beat, &loop, NULL) != 0 ||
	    pthread_create(&other, NULL, other_thread, &loop) != 0)
		return 1;
	int failed = run(&loop);
	pthread_join(other, NULL);
	tw_service_destroy(loop.timers);
	return failed ? 1 : 0;
}
