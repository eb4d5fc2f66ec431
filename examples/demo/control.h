/*
 * The control: a thread that only sleeps from tick to tick, and records how late it wakes up. What
 * the machine does to this thread, it also does to a timer service's threads. So this much of a
 * timeout's lateness is the machine's.
 */
#ifndef EXAMPLES_DEMO_CONTROL_H
#define EXAMPLES_DEMO_CONTROL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "examples/demo/sample.h"

struct control {
	pthread_t thread;
	_Atomic bool stop;
	uint64_t tick_ns;
	struct sample oversleep; /* the thread's until it is stopped */
};

bool control_start(struct control *c, uint64_t tick_ns);
void control_stop(struct control *c);

#endif
