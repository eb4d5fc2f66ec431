/*
 * What timers add to a turn of an epoll loop: `make bench-loop` prints CPU time a turn.
 *
 * Each turn finds one descriptor readable and reads it; a request is scheduled and cancelled in it.
 * The service has 1,000 idle timers of 30 s. With a request of 60 s the earliest timer stays, with
 * one of 5 s it changes twice in each turn. The loop learns by descriptor when to advance, or by
 * the next expiry; without timers it does neither.
 */
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "tickwheel.h"

enum { TURNS = 100000, IDLE_TIMERS = 1000, REPETITIONS = 5 };
enum way { WITHOUT, BY_DESCRIPTOR, BY_NEXT_EXPIRY, WAYS };
static const char *const names[WAYS] = {"without timers", "by descriptor", "by next expiry"};

static void nothing(void *arg)
{
	(void)arg;
}

static void watch(int epoll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int timeout_ms(tw_service *service)
{
	uint64_t next_ns = UINT64_MAX, now_ns = tw_service_now(service);
	tw_service_next_expiry(service, &next_ns);
	return next_ns > now_ns ? (int)((next_ns - now_ns - 1) / TW_MILLISECOND + 1) : 0;
}

static void turn(enum way way, int epoll_fd, int ready_fd, tw_service *service, uint64_t request_ns)
{
	struct epoll_event events[2];
	uint64_t one = 1;
	bool is_due = way == BY_NEXT_EXPIRY;
	if (write(ready_fd, &one, sizeof one) < 0)
		perror("write");
	int n = epoll_wait(epoll_fd, events, 2, way == BY_NEXT_EXPIRY ? timeout_ms(service) : -1);
	for (int i = 0; i < n; i++) {
		if (events[i].data.fd != ready_fd)
			is_due = true;
		else if (read(ready_fd, &one, sizeof one) < 0)
			perror("read");
	}
	tw_timer request;
	if (way != WITHOUT && tw_schedule(service, request_ns, nothing, NULL, &request) == 0)
		tw_cancel(service, request);
	if (is_due)
		tw_service_advance(service, 1000);
}

static double cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* CPU time of a turn, the least of the repetitions. */
static double measure(enum way way, uint64_t request_ns)
{
	struct tw_service_config config = TW_INIT(tw_service_config);
	tw_service *service;
	config.drive = TW_DRIVE_MANUAL;
	config.executor = tw_executor_inline();
	if (tw_service_create(&service, &config) != 0)
		return 0;
	int epoll_fd = epoll_create1(0), ready_fd = eventfd(0, EFD_NONBLOCK);
	watch(epoll_fd, ready_fd);
	if (way == BY_DESCRIPTOR)
		watch(epoll_fd, tw_service_fd(service));
	for (int i = 0; i < IDLE_TIMERS; i++)
		tw_schedule(service, 30 * TW_SECOND, nothing, NULL, NULL);
	double least = 1e18;
	for (int i = 0; i < REPETITIONS; i++) {
		double begun = cpu_ns();
		for (int t = 0; t < TURNS; t++)
			turn(way, epoll_fd, ready_fd, service, request_ns);
		double took = (cpu_ns() - begun) / TURNS;
		least = took < least ? took : least;
	}
	close(epoll_fd);
	close(ready_fd);
	tw_service_destroy(service);
	return least;
}

int main(void)
{
	printf("%-16s %24s %24s\n", "ns a turn", "the earliest stays", "the earliest changes");
	for (enum way way = 0; way < WAYS; way++)
		printf("%-16s %24.0f %24.0f\n", names[way], measure(way, 60 * TW_SECOND),
		       measure(way, 5 * TW_SECOND));
	return 0;
}
