/* In a forked child memory is freed in the order of the parent: layers, services, pools. */
#include <errno.h>

#include "test/support/child.h"
#include "test/support/rig.h"

TestSuite(fork_layers, .timeout = 60);

static struct all {
	tw_pool *pool; /* NULL: the service's own */
	tw_service *service;
	tw_strand *strand;
	tw_scheduler *scheduler;
	tw_limiter *limiter;
	tw_semaphore *semaphore;
	tw_action_scheduler *actions;
	tw_action *action;
} all;

static int act(tw_action *action, void *state)
{
	return 0;
}

static void open_all(bool shared)
{
	struct tw_service_config config = TW_INIT(tw_service_config);
	struct tw_limiter_config one = TW_INIT(tw_limiter_config);
	struct tw_action_scheduler_config async = TW_INIT(tw_action_scheduler_config);
	if (shared) {
		expect_eq(tw_pool_create(&all.pool, NULL), 0);
		config.executor = tw_pool_executor(all.pool);
	}
	expect_eq(tw_service_create(&all.service, &config), 0);
	one.max_concurrency = 1;
	async.kind = TW_ACTION_KIND_ASYNC;
	async.service = all.service;
	expect_eq(tw_strand_create(&all.strand, all.service, NULL), 0);
	expect_eq(tw_scheduler_create(&all.scheduler, all.service, NULL), 0);
	expect_eq(tw_limiter_create(&all.limiter, all.service, &one), 0);
	expect_eq(tw_semaphore_create(&all.semaphore, all.service, NULL, 1), 0);
	expect_eq(tw_action_scheduler_create(&all.actions, &async), 0);
	expect_eq(tw_action_create(&all.action, all.actions, act, NULL), 0);
	expect_eq(tw_action_schedule(all.action, NULL, HOUR), 0);
}

static void close_all(void)
{
	expect_ge(tw_action_destroy(all.action), 0);
	expect_eq(tw_action_scheduler_destroy(all.actions), 0);
	expect_eq(tw_semaphore_destroy(all.semaphore), 0);
	expect_eq(tw_limiter_destroy(all.limiter), 0);
	expect_eq(tw_scheduler_destroy(all.scheduler), 0);
	expect_eq(tw_strand_destroy(all.strand), 0);
	expect_eq(tw_service_destroy(all.service), 0);
	expect_eq(tw_pool_destroy(all.pool), 0);
}

/* The service and its pool live as long as something uses them. */
static void check_refused(void)
{
	child_eq(tw_service_destroy(all.service), -EBUSY);
	if (all.pool)
		child_eq(tw_pool_destroy(all.pool), -EBUSY);
}

static void destroy_in_child(void *arg)
{
	check_refused();
	child_eq(tw_strand_destroy(all.strand), 0);
	check_refused();
	child_eq(tw_scheduler_destroy(all.scheduler), 0);
	child_eq(tw_limiter_destroy(all.limiter), 0);
	child_eq(tw_semaphore_destroy(all.semaphore), 0);
	check_refused();
	child_eq(tw_action_scheduler_destroy(all.actions), -EBUSY);
	child_eq(tw_action_destroy(all.action), TW_GONE);
	child_eq(tw_action_scheduler_destroy(all.actions), 0);
	if (all.pool)
		child_eq(tw_pool_destroy(all.pool), -EBUSY);
	child_eq(tw_service_destroy(all.service), 0);
	child_eq(tw_pool_destroy(all.pool), 0);
}

Test(fork_layers, keep_their_service_and_its_pool_in_a_child)
{
	for (int shared = 0; shared < 2; shared++) {
		open_all(shared);
		expect_in_child(destroy_in_child, NULL);
		close_all();
	}
}
