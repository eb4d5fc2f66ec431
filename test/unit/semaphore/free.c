/*
 * If nobody waits, the semaphore's lock is not taken. The test holds the lock meanwhile, so that a
 * call that takes it would wait forever.
 */
#include <errno.h>

#include "executor/base/object.h"
#include "tickwheel/semaphore.h"
#include "test/support/rig.h"

TestSuite(semaphore_free, .timeout = 20);

Test(semaphore_free, uncontended_calls_take_no_lock)
{
	struct rig rig;
	tw_semaphore *permits;
	rig_open(&rig, NULL);
	expect_eq(tw_semaphore_create(&permits, rig.service, NULL, 2), 0);
	tw__object_lock((struct tw__object *)(void *)permits);
	expect_eq(tw_semaphore_acquire(permits, 1, 0), 0);
	expect_eq(tw_semaphore_acquire(permits, 1, TW_FOREVER), 0);
	expect_eq(tw_semaphore_acquire(permits, 1, 0), -EAGAIN);
	expect_eq(tw_semaphore_release(permits, 1), 0);
	expect_eq(tw_semaphore_acquire(permits, 1, 1), 0);
	expect_eq(tw_semaphore_release(permits, 1), 0);
	expect_eq(tw_semaphore_release(permits, 1), 0);
	tw__object_unlock((struct tw__object *)(void *)permits);
	expect_eq(tw_semaphore_release(permits, 1), -EOVERFLOW);
	expect_eq(tw_semaphore_destroy(permits), 0);
	rig_close(&rig);
}
