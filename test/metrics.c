/*
 * metrics TIMERS: runs TIMERS timers on each of three services. Writes their figures as one page
 * (tw_service_stats_prometheus_all). Two of the services have names that need escapes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tickwheel.h"

enum { SERVICES = 3 };

static void check(int r)
{
	if (r < 0) {
		fprintf(stderr, "metrics: %s\n", tw_strerror(r));
		exit(1);
	}
}

static void nothing(void *arg)
{
	(void)arg;
}

int main(int argc, char **argv)
{
	static const char *const names[SERVICES] = {"say \"hi\"\\\n", NULL, "caf\xc3\xa9 \xff"};
	tw_service *services[SERVICES];
	int timers = argc == 2 ? atoi(argv[1]) : 0;
	for (int i = 0; i < SERVICES; i++) {
		struct tw_service_config config = TW_INIT(tw_service_config);
		config.workers = 1;
		config.name = names[i];
		check(tw_service_create(&services[i], &config));
		for (int n = 0; n < timers; n++)
			check(tw_schedule(services[i], TW_MILLISECOND, nothing, NULL, NULL));
		check(tw_service_close(services[i], TW_CLOSE_DRAIN, TW_FOREVER));
	}
	check(tw_service_stats_prometheus_all(services, SERVICES, stdout));
	for (int i = 0; i < SERVICES; i++)
		check(tw_service_destroy(services[i]));
	return 0;
}
