/*
 * A heartbeat: a fixed-rate series keeps its phase. Beat n is due at first + n * period, however
 * long the beats before it took.
 *
 * One beat here takes more than two periods. With TW_MISSED_COALESCE one beat follows immediately,
 * since somebody waits for a sign of life. It learns from tw_current how many others it stands for.
 * Then the series is in phase again.
 */
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

#include "tickwheel.h"

#define PERIOD_NS (50 * TW_MILLISECOND)
#define BEATS 12
#define SLOW_BEAT 5

struct heart {
	tw_service *service;
	uint64_t started_ns;
	uint64_t due; /* periods that have passed, missed ones included */
	unsigned beats, early;
	sem_t ended;
};

/* Runs of one series never overlap, so the heart needs no lock. */
static void on_beat(void *arg)
{
	struct heart *h = arg;
	uint64_t since_ns = tw_service_now(h->service) - h->started_ns;
	struct tw_run_info run = TW_INIT(tw_run_info);
	tw_current(&run);
	h->due += 1 + run.overruns;
	h->beats++;
	h->early += since_ns < h->due * PERIOD_NS;
	printf("beat %2u at %7.3f ms, %.3f ms after its instant\n", h->beats,
	       (double)since_ns / 1e6, ((double)since_ns - (double)(h->due * PERIOD_NS)) / 1e6);
	if (h->beats == SLOW_BEAT)
		nanosleep(&(struct timespec){.tv_nsec = 2 * PERIOD_NS + PERIOD_NS / 2}, NULL);
}

static void on_end(void *arg, enum tw_fate fate)
{
	(void)fate;
	sem_post(&((struct heart *)arg)->ended);
}

int main(void)
{
	struct heart heart = {0};
	if (tw_service_create(&heart.service, NULL) != 0 || sem_init(&heart.ended, 0, 0) != 0)
		return 1;

	struct tw_period period = {.size = sizeof(period),
				   .first_ns = PERIOD_NS,
				   .period_ns = PERIOD_NS,
				   .count = BEATS,
				   .missed = TW_MISSED_COALESCE};
	struct tw_task task = {.size = sizeof(task),
			       .fn = on_beat,
			       .arg = &heart,
			       .period = &period,
			       .release = on_end};
	heart.started_ns = tw_service_now(heart.service);
	if (tw_schedule_task(heart.service, &task, NULL) != 0)
		return 1;
	while (sem_wait(&heart.ended) != 0)
		;
	printf("%u beats in %llu periods, %u early\n", heart.beats, (unsigned long long)heart.due,
	       heart.early);

	tw_service_destroy(heart.service);
	return heart.beats == BEATS && heart.early == 0 ? 0 : 1;
}
