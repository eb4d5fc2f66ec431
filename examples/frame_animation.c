/*
 * An animation in the terminal, paced by frames: an action on a frame clock re-arms itself with
 * delay 0, which means "the next frame". It shows how far each frame is from its instant. Into a
 * file or a pipe it prints some plain lines instead.
 */
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

#include "tickwheel/layers.h"

enum { FPS = 60, WIDTH = 40 };

struct animation {
	tw_action_scheduler *frames;
	bool on_terminal;
	uint64_t start_ns, worst_ns;
	uint64_t frames_wanted, frames_drawn;
	sem_t done;
};

/* How long after its instant, start + n / FPS, the frame is drawn. */
static uint64_t lateness_ns(const struct animation *a, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - a->start_ns;
	return passed_ns - passed_ns * FPS / TW_SECOND * TW_SECOND / FPS;
}

static void draw(const struct animation *a, uint64_t late_ns)
{
	unsigned phase = (unsigned)(a->frames_drawn % (2 * WIDTH - 2));
	unsigned at = phase < WIDTH ? phase : 2 * WIDTH - 2 - phase;
	char line[WIDTH + 1];
	for (unsigned i = 0; i < WIDTH; i++)
		line[i] = i == at ? 'o' : '.';
	line[WIDTH] = 0;
	if (a->on_terminal)
		printf("\r%s  frame %3" PRIu64 ", %4.2f ms late, worst %4.2f ms ", line,
		       a->frames_drawn, (double)late_ns / 1e6, (double)a->worst_ns / 1e6);
	else if (a->frames_drawn % 6 == 0)
		printf("%s  frame %3" PRIu64 ", %4.2f ms late\n", line, a->frames_drawn,
		       (double)late_ns / 1e6);
	fflush(stdout);
}

static int next_frame(tw_action *action, void *state)
{
	struct animation *a = state;
	uint64_t late_ns = lateness_ns(a, tw_action_scheduler_now(a->frames));
	a->worst_ns = late_ns > a->worst_ns ? late_ns : a->worst_ns;
	a->frames_drawn++;
	draw(a, late_ns);
	if (a->frames_drawn < a->frames_wanted)
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
	a->start_ns = tw_action_scheduler_now(a->frames);
	tw_action *action = NULL;
	r = tw_action_create(&action, a->frames, next_frame, NULL);
	r = r ? r : tw_action_schedule(action, a, 0);
	while (!r && sem_wait(&a->done) != 0)
		;
	uint64_t passed_ns = tw_action_scheduler_now(a->frames) - a->start_ns;
	tw_action_close(action, TW_FOREVER); /* its last run may still be returning */
	tw_action_destroy(action);
	tw_action_scheduler_destroy(a->frames);
	printf("%s%" PRIu64 " frames in %.0f ms; the latest was %.2f ms after its instant\n",
	       a->on_terminal ? "\n" : "", a->frames_drawn, (double)passed_ns / 1e6,
	       (double)a->worst_ns / 1e6);
	return r;
}

int main(void)
{
	struct animation a = {.on_terminal = isatty(STDOUT_FILENO)};
	struct tw_service_config config = {.size = sizeof(config), .tick_ns = 250 * TW_MICROSECOND};
	tw_service *service;
	a.frames_wanted = a.on_terminal ? 2 * FPS : FPS / 2;
	sem_init(&a.done, 0, 0);
	if (tw_service_create(&service, &config) != 0)
		return 1;
	int r = play(service, &a);
	tw_service_destroy(service);
	return r == 0 && a.frames_drawn == a.frames_wanted ? 0 : 1;
}
