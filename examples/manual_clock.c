/*
 * Tests a timeout of half an hour in no time: the clock is moved by hand, and callbacks run on the
 * thread that moves it.
 */
#include <stdio.h>

#include "tickwheel.h"

#define SESSION_NS (1800 * TW_SECOND)

static bool is_open = true;

static void on_session_end(void *arg)
{
	(void)arg;
	is_open = false;
}

static bool check(const char *what, bool holds)
{
	printf("%s: %s\n", what, holds ? "yes" : "NO");
	return holds;
}

int main(void)
{
	tw_clock *clock;
	tw_service *service;
	if (tw_clock_manual_create(&clock, 0) != 0)
		return 1;
	struct tw_service_config config = {.size = sizeof(config),
					   .clock = clock,
					   .drive = TW_DRIVE_MANUAL,
					   .executor = tw_executor_inline()};
	if (tw_service_create(&service, &config) != 0)
		return 1;

	bool ok = tw_schedule(service, SESSION_NS, on_session_end, NULL, NULL) == 0;
	ok &= tw_clock_manual_advance_by(clock, SESSION_NS - 1) == 0;
	ok &= check("open one nanosecond before its end", is_open);
	ok &= tw_clock_manual_advance_by(clock, 1 + 2 * TW_MILLISECOND) == 0;
	ok &= check("closed two ticks after it", !is_open);

	tw_service_destroy(service);
	ok &= tw_clock_manual_destroy(clock) == 0;
	return ok ? 0 : 1;
}
