/* A plugin that contains the static library: one service, made at the first use. For loaded.c. */
#include <pthread.h>
#include <stdlib.h>

#include "tickwheel.h"

__attribute__((visibility("default"))) void plugin_use(void);
__attribute__((visibility("default"))) int plugin_end(void);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static tw_service *service, *by_hand;

static void nothing(void *arg)
{
	(void)arg;
}

static void make(void)
{
	struct tw_service_config config = TW_INIT(tw_service_config);
	config.drive = TW_DRIVE_MANUAL;
	config.executor = tw_executor_inline();
	if (tw_service_create(&service, NULL) || tw_service_create(&by_hand, &config))
		abort();
}

/* The calling thread gets a part of both services, and runs a callback itself. */
void plugin_use(void)
{
	tw_timer timer;
	pthread_once(&once, make);
	if (tw_schedule(service, 0, nothing, NULL, NULL) ||
	    tw_schedule(by_hand, 0, nothing, NULL, &timer))
		abort();
	tw_service_advance(by_hand, TW_NO_LIMIT);
}

int plugin_end(void)
{
	int r = tw_service_close(service, TW_CLOSE_DRAIN, TW_FOREVER);
	r = r ? r : tw_service_destroy(service);
	return r ? r : tw_service_destroy(by_hand);
}
