/*
 * stress_action_ends SECONDS [SEED]: destroys schedulers of actions, and their services, while
 * other threads are still on their way out of the last calls that use them. What is touched too
 * late is found by the sanitizers, or crashes.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test/support/random.h"
#include "test/support/stress.h"
#include "tickwheel.h"

enum { KINDS = 4 };

static const enum tw_action_kind kinds[KINDS] = {TW_ACTION_KIND_ASYNC, TW_ACTION_KIND_ASAP,
						 TW_ACTION_KIND_FRAME, TW_ACTION_KIND_QUEUE};

/*
 * Two threads use a scheduler for the last time, each with an action of its own. The third destroys
 * scheduler and service as soon as it can. No thread knows how far the others are on their way out
 * of their calls.
 */
struct last_use {
	tw_action *action;
	uint64_t delay_ns;
	bool destroys; /* else the work does, if it is run */
};

static int run_last(tw_action *action, void *state)
{
	struct last_use *use = state;
	if (!use->destroys)
		tw_action_destroy(action);
	return 0;
}

static void *use_last(void *arg)
{
	struct last_use *use = arg;
	tw_action_schedule(use->action, use, use->delay_ns);
	if (use->destroys)
		tw_action_destroy(use->action);
	return NULL;
}

static void end_of_scheduler(uint64_t *seed)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .tick_ns = 50000, .workers = 1};
	struct tw_action_scheduler_config config = {.size = sizeof(config),
						    .kind = kinds[random_below(seed, KINDS)]};
	struct last_use uses[2];
	tw_service *last_service;
	tw_action_scheduler *scheduler;
	pthread_t threads[2];
	int r = tw_service_create(&last_service, &cfg);
	config.service = last_service;
	if (r || (r = tw_action_scheduler_create(&scheduler, &config)))
		violation("the last scheduler", r);
	for (int i = 0; i < 2; i++) {
		uses[i] = (struct last_use){.delay_ns = random_below(seed, 3) * 50000,
					    .destroys = random_percent(seed, 50)};
		if ((r = tw_action_create(&uses[i].action, scheduler, run_last, NULL)))
			violation("the last action", r);
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, use_last, &uses[i]);
	while ((r = tw_action_scheduler_destroy(scheduler)) == -EBUSY)
		sched_yield();
	if (r || (r = tw_service_destroy(last_service)))
		violation("the end", r);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	atomic_fetch_add(&stress_rounds, 1);
}

int main(int argc, char **argv)
{
	uint64_t seed = stress_begin(argc, argv);
	do {
		end_of_scheduler(&seed);
	} while (stress_goes_on());
	printf("ok: %lu ends\n", atomic_load(&stress_rounds));
	return 0;
}
