/*
 * A connection is freed while its callbacks run on workers. WRONG: free after a cancel that does
 * not wait.
 */
#include "teardown.h"
#include "support.h"

enum { ROUNDS = 1000, TIMERS = 3 };

static atomic_int runs;

static void touch(void *arg)
{
	struct connection *c = arg;
	c->fd = __atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED) != 0;
}

static void touch_slowly(void *arg)
{
	outlast_the_free();
	touch(arg);
}

static struct connection *open_connection(tw_service *service, tw_fn *fn)
{
	struct connection *c = zeroed(sizeof *c);
	*c = (struct connection){.service = service};
	CHECK(tw_group_create(&c->timers, service) == 0);
	for (int i = 0; i < TIMERS; i++) {
		struct tw_task task = {.size = sizeof task,
				       .fn = fn,
				       .arg = c,
				       .when_ns = (uint64_t)i * 100000,
				       .group = c->timers};
		CHECK(tw_schedule_task(service, &task, NULL) == 0);
	}
	return c;
}

static void wrong_free(struct connection *c)
{
	tw_group_close(c->service, c->timers, NULL, NULL);
	tw_group_destroy(c->service, c->timers);
	free(c);
}

int main(int argc, char **argv)
{
	read_way(argc, argv);
	tw_service *service = service_of_four();
	unsigned seed = 1;
	for (int i = 0; i < ROUNDS; i++) {
		struct connection *c = open_connection(service, touch);
		jitter(&seed, 400);
		connection_free(c);
	}
	CHECK(runs > 0);
	struct connection *c = open_connection(service, touch_slowly);
	await_at_least(&entered, 1);
	(wrong ? wrong_free : connection_free)(c);
	freed_early = true;
	CHECK(tw_service_destroy(service) == 0);
	return 0;
}
