/* What the semaphore refuses, and its life. */
#include <errno.h>

#include "test/support/child.h"
#include "test/support/faults.h"
#include "test/support/semaphore_suite.h"

TestSuite(semaphore_bad_input, .fini = close_left);

/* ---------------------------------------------------------------------- life */

Test(semaphore_bad_input, service_and_pool_stay_open_while_it_lives)
{
	tw_pool *pool;
	open_with(1);
	expect_eq(
	    tw_pool_create(&pool, &(struct tw_pool_config){.size = sizeof(struct tw_pool_config),
							   .workers = 1}),
	    0);
	tw_semaphore *other;
	expect_eq(tw_semaphore_create(&other, rig.service, tw_pool_executor(pool), 1), 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), -EBUSY);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), -EBUSY);
	expect_eq(tw_semaphore_destroy(other), 0);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
	expect_eq(tw_semaphore_create(&other, rig.service, tw_pool_executor(pool), 1), -ESHUTDOWN);
	expect_eq(tw_pool_destroy(pool), 0);
}

Test(semaphore_bad_input, without_memory_nothing_is_made_and_nothing_left)
{
	open_with(1);
	tw_semaphore *other = NULL;
	long before = faults_outstanding();
	faults_arm(0, true);
	int create = tw_semaphore_create(&other, rig.service, NULL, 1);
	tw_waiter waiter = {7};
	/* the first: nodes are to be made */
	int async = tw_semaphore_acquire_async(permits, 1, note, NULL, &waiter);
	faults_disarm();
	expect_eq(create, -ENOMEM);
	expect_eq(async, -ENOMEM);
	expect_eq(waiter.id, 7);
	expect_eq(faults_outstanding(), before);
	expect_eq(gauges().available, 1);
}
