/* A program's own executor that uses a ticket twice; and the inline one. */
#include <pthread.h>
#include <signal.h>

#include "test/support/rig_suite.h"

TestSuite(runs_executor, .init = open_rig, .fini = close_rig, .timeout = 30);

Test(runs_executor, inline_runs_on_the_thread_that_drives)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MS);
	rig_advance(&rig, MS);
	cr_assert(pthread_equal(rig.events[0].thread, pthread_self()));
}

#ifdef TW_DEBUG
/* Beyond the last ticket of a batch. */
Test(runs_executor, that_uses_a_ticket_twice_is_found, .signal = SIGABRT)
{
	struct probe probe = PROBE(&rig, 1);
	reopen_on_queue();
	probe_schedule(&probe, MS);
	rig_advance(&rig, MS);
	tw_batch *batch = queue.tickets[queue.head];
	expect_eq(queue_executor_run_next(&queue), 1);
	tw_run_one(batch);
}
#endif
