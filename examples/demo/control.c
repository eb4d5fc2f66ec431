/* Ticks that pass while it oversleeps are skipped, as a timer service does. */
#include "examples/demo/control.h"
#include "examples/demo/instant.h"

static void *run(void *arg)
{
	struct control *c = arg;
	uint64_t due_ns = instant_ns() + c->tick_ns;
	while (!atomic_load_explicit(&c->stop, memory_order_relaxed)) {
		sleep_until_ns(due_ns);
		uint64_t woke_ns = instant_ns();
		sample_add(&c->oversleep, (int64_t)(woke_ns - due_ns));
		due_ns += (1 + (woke_ns - due_ns) / c->tick_ns) * c->tick_ns;
	}
	return NULL;
}

bool control_start(struct control *c, uint64_t tick_ns)
{
	c->tick_ns = tick_ns;
	return pthread_create(&c->thread, NULL, run, c) == 0;
}

void control_stop(struct control *c)
{
	atomic_store_explicit(&c->stop, true, memory_order_relaxed);
	pthread_join(c->thread, NULL);
}
