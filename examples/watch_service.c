/*
 * What a service shows of itself: names of what runs and waits, the latencies of the last moment, a
 * page for Prometheus.
 */
#include <stdio.h>
#include <time.h>

#include "tickwheel.h"

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void compress(void *arg)
{
	(void)arg;
	sleep_ms(40);
}

static void beat(void *arg)
{
	(void)arg;
}

static int schedule(tw_service *service, const char *name, tw_fn *fn, uint64_t when_ns)
{
	struct tw_task task = TW_INIT(tw_task);
	task.fn = fn;
	task.when_ns = when_ns;
	task.name = name;
	return tw_schedule_task(service, &task, NULL);
}

/*
 * The window since the last look: what a dashboard shows, where the figures since the start hide
 * the last minute.
 */
static int look(tw_service *service, struct tw_service_histograms *before)
{
	struct tw_service_histograms now = TW_INIT(tw_service_histograms);
	if (tw_service_histograms(service, &now) != 0)
		return -1;
	struct tw_histogram window = now.run;
	if (tw_histogram_subtract(&window, &before->run) != 0)
		return -1;
	printf("%2llu runs since the last look, 99 %% within %.3f ms\n",
	       (unsigned long long)window.count,
	       (double)tw_histogram_percentile(&window, 0.99) / 1e6);
	*before = now;
	return 0;
}

int main(void)
{
	tw_service *service;
	struct tw_service_histograms before = TW_INIT(tw_service_histograms);
	if (tw_service_create(&service, NULL) != 0)
		return 1;
	/* For tickwheel-top; a sandbox may refuse it. */
	int published = tw_service_publish(service, "example");
	if (published != 0)
		printf("not published: %s\n", tw_strerror(published));
	for (uint64_t i = 0; i < 20; i++)
		schedule(service, "beat", beat, i * TW_MILLISECOND);
	schedule(service, "compress", compress, 30 * TW_MILLISECOND);
	schedule(service, "idle timeout", beat, 30 * TW_SECOND);

	sleep_ms(25);
	int failed = look(service, &before); /* the beats */
	sleep_ms(25);
	printf("now:\n");
	failed |= tw_service_dump(service, stdout); /* compress runs, the idle timeout waits */
	sleep_ms(50);
	failed |= look(service, &before); /* compress */
	printf("for Prometheus:\n");
	failed |= tw_service_stats_prometheus(service, stdout);
	return tw_service_destroy(service) != 0 || failed;
}
