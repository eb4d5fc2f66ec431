/* How tasks end: failing, cancelling, closing; max_tasks. */
#include <errno.h>

#include "test/support/scheduler_script.h"
#include "test/support/work_suite.h"

TestSuite(scheduler_ends, .init = open_rig, .fini = close_rig, .timeout = 30);

static const struct script ends[] = {
    {"a failing task is told and not retried, the others go on, and all is restored",
     {{"submit 1 priority=2 error=EIO {priority}; submit 2; priority; run",
       "wanted, priority 3, turn 1, priority 2, 1 failed EIO, turn 2, 2 done, IDLE"},
      {"priority; should_yield; stats failed completed; failure",
       "priority 3, go on, failed=1, completed=1, EIO of 1"},
      {"submit 3 priority=5", "wanted"}, /* the host is asked anew: nothing runs */
      {"run", "turn 3, 3 done, IDLE"}}},
    {"cancel of waiting, finished and unknown tasks",
     {{"submit 1 2; cancel 1; cancel 1; run; cancel 2; cancel 9",
       "wanted, 1 cancelled, CANCELLED, GONE, turn 2, 2 done, IDLE, GONE, GONE"}}},
    {"cancel of a running task ends it if it wants to go on",
     {{"submit 1 turns=2 {cancel 1}; submit 2 {cancel 2}; run; stats cancelled",
       "wanted, turn 1, RUNNING, 1 cancelled, turn 2, RUNNING, 2 done, IDLE, cancelled=1"}}},
    {"cancelled tasks, ready and delayed, are gone, and the others keep their order",
     {{"submit 0 delay=1; submit 1; submit 2 delay=3; submit 3; submit 4 delay=5", "wanted"},
      {"submit 5; submit 6 delay=7; pending", "4 pending"},
      {"cancel 6 5 0 1; stats ready delayed; pending",
       "6 cancelled, CANCELLED, 5 cancelled, CANCELLED, 0 cancelled, CANCELLED, 1 cancelled, "
       "CANCELLED, ready=1, delayed=2, 2 pending"},
      {"drive 20; run; stats cancelled completed",
       "@20 turn 3, 3 done, turn 2, 2 done, turn 4, 4 done, IDLE, cancelled=4, completed=3"}}},
    {"a turn may neither close, destroy nor run",
     {{"submit 1 {close; destroy; run}; run",
       "wanted, turn 1, EDEADLK, EDEADLK, EBUSY, 1 done, IDLE"}}},
    {"a done function may not destroy",
     {{"submit 1 [destroy]; cancel 1", "wanted, 1 cancelled, EDEADLK, CANCELLED"}}},
    {"a close tells each remaining task and refuses new ones",
     {{"submit 1; submit 2 delay=1; submit 3; cancel 3; close",
       "wanted, 3 cancelled, CANCELLED, 2 dropped, 1 dropped"},
      {"submit 4; run; cancel 1; close; stats dropped rejected ready delayed",
       "ESHUTDOWN, ESHUTDOWN, GONE, dropped=2, rejected=1, ready=0, delayed=0"},
      {"drive 10", ""}}},
    {"max_tasks bounds what has not ended",
     {{"given max=2; submit 1 2 error=EIO; submit 3", "wanted, EAGAIN"},
      {"run 1; submit 3; close", "turn 1, 1 failed EIO, MORE, 2 dropped, 3 dropped"}}},
    {"cancelled tasks do not count against max_tasks",
     {{"given max=4; submit 0 1; submit 2 3 bare; submit 4; cancel 2 3; submit 4 5 bare; submit 6",
       "wanted, EAGAIN, CANCELLED, CANCELLED, EAGAIN"},
      {"cancel 4 5; submit 6 7; submit 8; cancel 6 7; submit 8 9; submit 10",
       "CANCELLED, CANCELLED, EAGAIN, 6 cancelled, CANCELLED, 7 cancelled, CANCELLED, EAGAIN"},
      {"close", "0 dropped, 1 dropped, 8 dropped, 9 dropped"}}},
};

Test(scheduler_ends, ends)
{
	PLAY(&scheduler_stage, NULL, ends);
}

static int go_on_without_next(struct job *job, struct tw_turn *turn)
{
	turn->next = NULL;
	if (job->other)
		tw_scheduler_cancel(turn->scheduler, turn->task);
	return TW_TURN_AGAIN;
}

Test(scheduler_ends, task_that_goes_on_without_a_continuation_is_done)
{
	for (int cancelled = 0; cancelled < 2; cancelled++) {
		struct job job = JOB(&rig, 1), next = JOB(&rig, 2);
		job.act = go_on_without_next;
		job.other = cancelled ? &next : NULL;
		job_post(&job, TW_PRIORITY_NORMAL);
		job_post(&next, TW_PRIORITY_NORMAL);
		expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
		expect_told(&job, TW_FATE_FIRED, 0);
		expect_told(&next, TW_FATE_FIRED, 0);
		expect_eq(tw_scheduler_cancel(rig.scheduler, job.task), TW_GONE);
		struct tw_scheduler_stats stats = work_rig_stats(&rig);
		expect_eq(stats.completed, 2u * (unsigned)(cancelled + 1));
		expect_eq(stats.continued, 0);
		expect_eq(stats.ready, 0);
	}
}
