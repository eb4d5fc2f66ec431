/* Services that the test drives by hand on a real clock, and a loop that watches the descriptor. */
#ifndef TEST_SUPPORT_BY_HAND_H
#define TEST_SUPPORT_BY_HAND_H

#include <poll.h>

#include "test/support/expect.h"

enum { FOR_EVER = -1 };

static inline tw_service *open_by_hand(tw_clock *clock)
{
	struct tw_service_config cfg = {.size = sizeof(cfg),
					.drive = TW_DRIVE_MANUAL,
					.executor = tw_executor_inline(),
					.clock = clock};
	tw_service *service = NULL;
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

static inline bool readable(int fd, int timeout_ms)
{
	struct pollfd watched = {.fd = fd, .events = POLLIN};
	return poll(&watched, 1, timeout_ms) == 1 && watched.revents == POLLIN;
}

static inline void nothing(void *arg)
{
}

/* What a loop does with the descriptor, until `runs` callbacks have run. */
static inline void turn_until(tw_service *service, int fd, int runs)
{
	while (runs > 0) {
		expect_eq(readable(fd, FOR_EVER), true);
		int ran = tw_service_advance(service, TW_NO_LIMIT);
		expect_ge(ran, 0);
		runs -= ran;
	}
}

#endif
