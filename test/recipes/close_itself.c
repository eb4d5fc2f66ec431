/*
 * An idle timeout closes its own connection while another timer of the connection runs. WRONG: the connection is freed in the idle
 * timeout's release, as this guide once said.
 */
#include "close_itself.h"
#include "support.h"

enum { ROUNDS = 1000 };

static atomic_int touches, entered;

static void on_heartbeat(void *arg)
{
	struct client *c = arg;
	touches += c->fd >= 0;
}

static void slow_heartbeat(void *arg)
{
	entered = 1;
	usleep(50000);
	on_heartbeat(arg);
}

static void free_in_release(void *arg, enum tw_fate fate)
{
	(void)fate;
	client_end(arg);
}

static void close_only(void *arg)
{
	struct client *c = arg;
	tw_group_close(c->service, c->timers);
}

static void open_client(tw_service *service, tw_fn *heartbeat, bool wrong)
{
	struct client *c = zeroed(sizeof *c);
	int pipes[2];
	CHECK(pipe(pipes) == 0);
	close(pipes[1]);
	*c = (struct client){.service = service, .fd = pipes[0]};
	CHECK(tw_group_create(service, &c->timers) == 0);
	struct tw_task beat = {.size = sizeof beat, .fn = heartbeat, .arg = c, .group = c->timers};
	struct tw_task idle = {
	    .size = sizeof idle, .fn = client_on_idle, .arg = c, .when_ns = 100000, .group = c->timers};
	if (wrong) {
		idle.fn = close_only;
		idle.release = free_in_release;
	}
	CHECK(tw_schedule_task(service, &beat, NULL) == 0);
	CHECK(tw_schedule_task(service, &idle, NULL) == 0);
}

int main(int argc, char **argv)
{
	tw_service *service = service_of_four();
	unsigned seed = 1;
	for (int i = 0; i < ROUNDS; i++) {
		open_client(service, on_heartbeat, false);
		jitter(&seed, 200);
	}
	open_client(service, slow_heartbeat, is_wrong(argc, argv));
	while (!entered)
		usleep(100);
	usleep(100000);
	CHECK(tw_service_close(service, TW_CLOSE_RUN, TW_FOREVER) == 0);
	CHECK(touches > 0);
	return tw_service_destroy(service); /* a client that was not freed is a leak */
}
