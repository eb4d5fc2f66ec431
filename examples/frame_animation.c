/*
 * An animation paced by frames: an action on a frame clock re-arms itself with delay 0, which means
 * "the next frame". It shows how far frames are from their instants.
 */
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>

#include "tickwheel/layers.h"

enum { FPS = 60, FRAMES = 30 };

struct animation {
	tw_action_scheduler *frames;
	tw_service *service;
	uint64_t start_ns, worst_ns, frames_drawn;
	sem_t done;
};

/* How long after its instant, start + n / FPS, the frame is drawn. */
static uint64_t lateness_ns(const struct animation *a, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - a->start_ns;
	return passed_ns - passed_ns * FPS / TW_SECOND * TW_SECOND / FPS;
}

static int next_frame(tw_action *action, void *state)
{
	struct animation *a = state;
	uint64_t late_ns = lateness_ns(a, tw_service_now(a->service));
	a->worst_ns = late_ns > a->worst_ns ? late_ns : a->worst_ns;
	a->frames_drawn++;
	printf("%*c  frame %" PRIu64 ", %.2f ms late\n", (int)a->frames_drawn, 'o', a->frames_drawn,
	       (double)late_ns / 1e6);
	if (a->frames_drawn < FRAMES)
		tw_action_schedule(action, a, 0);
	else
		sem_post(&a->done);
	return 0;
}

static int play(tw_service *service, struct animation *a)
{
	struct tw_action_scheduler_config config = {.size = sizeof(config),
						    .kind = TW_ACTION_KIND_FRAME,
						    .service = service,
						    .frames_per_second = FPS};
	int r = tw_action_scheduler_create(&a->frames, &config);
	if (r)
		return r;
	/* A moment after the frame clock's own start. */
	a->start_ns = tw_service_now(service);
	tw_action *action = NULL;
	r = tw_action_create(&action, a->frames, next_frame, NULL);
	r = r ? r : tw_action_schedule(action, a, 0);
	while (!r && sem_wait(&a->done) != 0)
		;
	tw_action_close(action, TW_FOREVER); /* its last run may still be returning */
	tw_action_destroy(action);
	tw_action_scheduler_destroy(a->frames);
	return r;
}

int main(void)
{
	struct animation a = {0};
	struct tw_service_config config = {.size = sizeof(config), .tick_ns = 250 * TW_MICROSECOND};
	tw_service *service;
	sem_init(&a.done, 0, 0);
	if (tw_service_create(&service, &config) != 0)
		return 1;
	a.service = service;
	int r = play(service, &a);
	tw_service_destroy(service);
	printf("the latest was %.2f ms after its instant\n", (double)a.worst_ns / 1e6);
	return r == 0 && a.frames_drawn == FRAMES ? 0 : 1;
}
