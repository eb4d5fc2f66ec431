/* tw_group_close_then frees a connection whose members run on several threads. */
#include <stdlib.h>

#include "test/support/ending.h"
#include "test/support/rig_suite.h"

TestSuite(group_then_executor, .init = open_rig, .fini = close_rig, .timeout = 60);

/* ------------------------------------------------------------ the connection that is freed */

/*
 * A connection with two timers, of which one ends the connection while the other's callback is in
 * the middle. The recipe says who frees it. A flag outside tells when; AddressSanitizer checks each
 * touch.
 */
struct connection {
	tw_service *service;
	tw_group timers;
	int touched;
};

static bool connection_is_freed, seen_freed, seen_poisoned;

static void connection_free(struct connection *c)
{
	tw_group_destroy(c->service, c->timers);
	free(c);
	connection_is_freed = true;
}

#ifdef __SANITIZE_ADDRESS__
int __asan_address_is_poisoned(void const volatile *address);
#endif

static void look_at(struct connection *c)
{
	seen_freed = connection_is_freed;
#ifdef __SANITIZE_ADDRESS__
	seen_poisoned = __asan_address_is_poisoned(&c->touched);
#else
	seen_poisoned = seen_freed;
#endif
	if (!seen_freed)
		c->touched++;
}

static void read_from_peer(void *arg)
{
	struct connection *c = arg;
	tw_service *service = c->service;
	c->touched++;
	for (int i = 0; i < 3; i++) { /* meanwhile, on other threads */
		queue_executor_run_all(&queue);
		tw_service_advance(service, TW_NO_LIMIT);
	}
	look_at(c);
}

static void close_as_idle_old(void *arg)
{
	struct connection *c = arg;
	tw_group_close(c->service, c->timers);
}

static void free_in_release(void *arg, enum tw_fate fate)
{
	(void)fate;
	connection_free(arg);
}

static void free_at_end(void *arg)
{
	connection_free(arg);
}

static void close_as_idle(void *arg)
{
	struct connection *c = arg;
	tw_group_close_then(c->service, c->timers, free_at_end, c);
}

static void add_timer(struct connection *c, tw_fn *fn, tw_release_fn *release)
{
	struct tw_task task = {.size = sizeof(task),
			       .fn = fn,
			       .arg = c,
			       .when_ns = MS,
			       .release = release,
			       .group = c->timers};
	expect_eq(tw_schedule_task(c->service, &task, NULL), 0);
}

static void let_one_timer_end_the_connection_of_another(tw_fn *idle, tw_release_fn *idle_release)
{
	reopen_on_queue();
	connection_is_freed = seen_freed = seen_poisoned = false;
	struct connection *c = malloc(sizeof *c);
	*c = (struct connection){.service = rig.service, .timers = group_of(&rig)};
	add_timer(c, read_from_peer, NULL);
	add_timer(c, idle, idle_release);
	rig_advance(&rig, MS);
	queue_executor_run_all(&queue);
	rig_advance(&rig, MS);
	queue_executor_run_all(&queue);
	expect_eq(connection_is_freed, true);
}

Test(group_then_executor, frees_a_connection_that_another_members_callback_still_uses)
{
	let_one_timer_end_the_connection_of_another(close_as_idle, NULL);
	expect_eq(seen_freed, false);
	expect_eq(seen_poisoned, false);
}

/* Why it is there: a release of one member says nothing of the others. */
Test(group_then_executor, a_release_would_free_it_too_early)
{
	let_one_timer_end_the_connection_of_another(close_as_idle_old, free_in_release);
	expect_eq(seen_freed, true);
	expect_eq(seen_poisoned, true);
}
