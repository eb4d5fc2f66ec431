/* What the semaphore refuses, and its life. */
#include <errno.h>

#include "test/support/child.h"
#include "test/support/faults.h"
#include "test/support/semaphore_suite.h"

/* ----------------------------------------------------------------- bad input */

Test(semaphore_bad_input, bad_input_is_refused_and_changes_nothing)
{
	open_with(1);
	tw_semaphore *other = NULL;
	tw_executor hollow = {NULL};
	static const struct tw_executor_ops no_submit = {.size = sizeof(no_submit)};
	tw_executor idle = {&no_submit};
	expect_eq(tw_semaphore_create(NULL, rig.service, NULL, 1), -EINVAL);
	expect_eq(tw_semaphore_create(&other, NULL, NULL, 1), -EINVAL);
	expect_eq(tw_semaphore_create(&other, rig.service, NULL, -1), -EINVAL);
	expect_eq(tw_semaphore_create(&other, rig.service, NULL, INT32_MIN), -EINVAL);
	expect_eq(tw_semaphore_create(&other, rig.service, &hollow, 1), -EINVAL);
	expect_eq(tw_semaphore_create(&other, rig.service, &idle, 1), -EINVAL);
	cr_assert_null(other);
	expect_eq(tw_semaphore_acquire(NULL, 1, 0), -EINVAL);
	expect_eq(tw_semaphore_acquire(NULL, 1, 1), -EINVAL);
	expect_eq(tw_semaphore_release(NULL, 1), -EINVAL);
	expect_eq(tw_semaphore_cancel(NULL, (tw_waiter){1}), -EINVAL);
	expect_eq(tw_semaphore_set_capacity(NULL, 1), -EINVAL);
	expect_eq(tw_semaphore_set_capacity(permits, -1), -EINVAL);
	tw_waiter waiter = {7};
	expect_eq(tw_semaphore_acquire_async(NULL, 1, note, NULL, &waiter), -EINVAL);
	expect_eq(tw_semaphore_acquire_async(permits, 1, NULL, NULL, &waiter), -EINVAL);
	expect_eq(waiter.id, 7);
	expect_eq(tw_semaphore_stats(NULL, &(struct tw_semaphore_stats){.size = 8}), -EINVAL);
	expect_eq(tw_semaphore_stats(permits, NULL), -EINVAL);
	expect_eq(tw_semaphore_stats(permits, &(struct tw_semaphore_stats){.size = 8}), -EINVAL);
	expect_eq(gauges().available, 1);
	expect_eq(gauges().capacity, 1);
	expect_eq(tw_semaphore_destroy(NULL), 0);
	close_all();
}

Test(semaphore_bad_input, stats_of_an_older_and_of_a_newer_program)
{
	open_with(3);
	struct {
		struct tw_semaphore_stats stats;
		uint64_t beyond;
	} newer = {.stats = {.size = sizeof(newer)}, .beyond = 7};
	expect_eq(tw_semaphore_stats(permits, &newer.stats), 0);
	expect_eq(newer.stats.available, 3);
	expect_eq(newer.beyond, 0);
	struct tw_semaphore_stats older = {.size = offsetof(struct tw_semaphore_stats, available),
					   .available = 77};
	expect_eq(tw_semaphore_stats(permits, &older), 0);
	expect_eq(older.capacity, 3);
	expect_eq(older.available, 77);
	close_all();
}

/* ---------------------------------------------------------------------- life */

Test(semaphore_bad_input, destroy_is_refused_while_somebody_waits)
{
	open_with(1);
	acquire(1);
	tw_waiter waiter = wait_as(1);
	expect_eq(tw_semaphore_destroy(permits), -EBUSY);
	expect_eq(tw_semaphore_cancel(permits, waiter), TW_CANCELLED);
	close_all(); /* with a permit out */
}

/* The executor never takes the cancelled function, so the driver does the rest. */
Test(semaphore_bad_input, executor_that_refuses_for_good_does_not_keep_it_from_its_end)
{
	open_with(1);
	queue.refuse = SIZE_MAX;
	tw_waiter early = wait_as(1);
	expect_eq(tw_semaphore_cancel(permits, early), TW_CANCELLED);
	tw_waiter late = wait_as(2);
	rig_advance(&rig, 2 * MS); /* it has been offered again, and refused */
	expect_eq(tw_semaphore_cancel(permits, late), TW_CANCELLED);
	rig_advance(&rig, 2 * MS);
	expect_eq(gauges().handed, 0);
	expect_eq(called, 0);
	close_all();
}

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
	close_all();
}

Test(semaphore_bad_input, of_a_closed_service_is_refused)
{
	rig_open(&rig, NULL);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
	expect_eq(tw_semaphore_create(&permits, rig.service, NULL, 1), -ESHUTDOWN);
	rig_close(&rig);
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
	close_all();
}

static void check_in_child(void *arg)
{
	(void)arg;
	tw_waiter waiter = {1};
	tw_semaphore *other;
	struct tw_semaphore_stats stats = {.size = sizeof(stats)};
	child_eq(tw_semaphore_create(&other, rig.service, NULL, 1), -EPERM);
	child_eq(tw_semaphore_acquire(permits, 1, 0), -EPERM);
	child_eq(tw_semaphore_acquire(permits, 1, TW_FOREVER), -EPERM);
	child_eq(tw_semaphore_acquire_async(permits, 1, note, NULL, &waiter), -EPERM);
	child_eq(tw_semaphore_cancel(permits, waiter), -EPERM);
	child_eq(tw_semaphore_release(permits, 1), -EPERM);
	child_eq(tw_semaphore_set_capacity(permits, 3), -EPERM);
	child_eq(tw_semaphore_stats(permits, &stats), -EPERM);
	child_eq(tw_semaphore_destroy(permits), 0);
}

Test(semaphore_bad_input, a_forked_child_is_refused_and_the_parent_untouched)
{
	open_with(1);
	acquire(1);
	tw_waiter waiter = wait_as(1);
	expect_in_child(check_in_child, NULL);
	expect_eq(tw_semaphore_cancel(permits, waiter), TW_CANCELLED);
	release(1);
	expect_eq(gauges().available, 1);
	close_all();
}
