/*
 * An idle timeout closes its own connection while another timer of the connection runs. WRONG: the
 * connection is freed in the idle timeout's release, as this guide once said. /
 */
#include "close_itself.h"
#include "support.h"

enum { ROUNDS = 1000 };

static atomic_int touches;

static void on_heartbeat(void *arg)
{
	struct client *c = arg;
	touches += c->fd >= 0;
}

static void slow_heartbeat(void *arg)
{
	outlast_the_free();
	on_heartbeat(arg);
}

static void free_in_release(void *arg, enum tw_fate fate)
{
	(void)fate;
	client_end(arg);
	freed_early = true;
}

static void close_only(void *arg)
{
	struct client *c = arg;
	tw_group_close(c->service, c->timers, NULL, NULL);
}

static struct client *open_client(tw_service *service)
{
	struct client *c = zeroed(sizeof *c);
	int pipes[2];
	CHECK(pipe(pipes) == 0);
	close(pipes[1]);
	*c = (struct client){.service = service, .fd = pipes[0]};
	CHECK(tw_group_create(&c->timers, service) == 0);
	return c;
}

static void schedule(struct client *c, uint64_t delay_ns, tw_fn *fn, tw_release_fn *release)
{
	struct tw_task task = {.size = sizeof task,
			       .fn = fn,
			       .arg = c,
			       .when_ns = delay_ns,
			       .group = c->timers,
			       .release = release};
	CHECK(tw_schedule_task(c->service, &task, NULL) == 0);
}

int main(int argc, char **argv)
{
	read_way(argc, argv);
	tw_service *service = service_of_four();
	unsigned seed = 1;
	for (int i = 0; i < ROUNDS; i++) {
		struct client *c = open_client(service);
		schedule(c, 0, on_heartbeat, NULL);
		schedule(c, 100000, client_on_idle, NULL); /* the client may be gone from here on */
		jitter(&seed, 200);
	}

	struct client *c = open_client(service);
	schedule(c, 0, slow_heartbeat, NULL);
	await_at_least(&entered,
		       1); /* only then: the idle timeout cancels a heartbeat that has not begun */
	if (wrong)
		schedule(c, 0, close_only, free_in_release);
	else
		schedule(c, 0, client_on_idle, NULL);
	CHECK(tw_service_close(service, TW_CLOSE_RUN, TW_FOREVER) == 0);
	CHECK(touches > 0);
	return tw_service_destroy(service); /* a client that was not freed is a leak */
}
