/* Schedulers with a manual host, on a manual clock: order, slices, delays. */
#include <errno.h>

#include "test/support/scheduler_script.h"
#include "test/support/work_suite.h"

TestSuite(scheduler, .init = open_rig, .fini = close_rig, .timeout = 30);

Test(scheduler, timeouts_are_those_of_the_priorities)
{
	static const struct {
		enum tw_priority priority;
		uint64_t timeout_ns;
	} table[] = {
	    {TW_PRIORITY_USER_BLOCKING, 250 * MS}, {TW_PRIORITY_NORMAL, 5000 * MS},
	    {TW_PRIORITY_LOW, 10000 * MS},         {TW_PRIORITY_IDLE, UINT64_C(1073741823) * MS},
	    {TW_PRIORITY_NONE, 5000 * MS},         {(enum tw_priority)6, 5000 * MS},
	    {(enum tw_priority) - 1, 5000 * MS}};
	for (int i = 0; i < 7; i++) {
		struct job early = JOB(&rig, 0), late = JOB(&rig, 1);
		job_post(&early, table[i].priority);
		work_rig_spend(&rig, table[i].timeout_ns - 1);
		expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
		expect_eq(early.timed_out, 0);
		job_post(&late, table[i].priority);
		work_rig_spend(&rig, table[i].timeout_ns);
		expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
		expect_eq(late.timed_out, 1);
	}
}

static const struct script scripts[] = {
    /* slices */
    {"worked check: an immediate task of ten units does all in one call",
     {{"submit 1 priority=1 units=10 each=2; run", "wanted, late 1, @20 left 0, 1 done, IDLE"}}},
    {"worked check: a user-blocking task of ten units takes four calls",
     {{"submit 1 priority=2 units=10 each=2; run", "wanted, turn 1, @6 left 7, MORE"},
      {"run", "turn 1, @12 left 4, MORE"},
      {"run", "turn 1, @18 left 1, MORE"},
      {"run", "turn 1, @20 left 0, 1 done, IDLE"}}},
    {"an unknown priority is normal",
     {{"submit 0 priority=0 {priority}; submit 1 priority=6 {priority}; run",
       "wanted, turn 0, priority 3, 0 done, turn 1, priority 3, 1 done, IDLE"},
      {"submit 2 priority=-1 {priority}; submit 3 priority=1000 {priority}; run",
       "wanted, turn 2, priority 3, 2 done, turn 3, priority 3, 3 done, IDLE"}}},
    {"the slice is the config's",
     {{"given slice=10; submit 0..9 stays=2; run",
       "wanted, turn 0, @2 0 done, turn 1, @4 1 done, turn 2, @6 2 done, turn 3, @8 3 done, "
       "turn 4, @10 4 done, MORE"},
      {"close", "5 dropped, 6 dropped, 7 dropped, 8 dropped, 9 dropped"}}},
    {"a budget bounds the turns of expired tasks too",
     {{"submit 0..4 priority=1 stays=2; run 2",
       "wanted, late 0, @2 0 done, late 1, @4 1 done, MORE"},
      {"run 3", "late 2, @6 2 done, late 3, @8 3 done, late 4, @10 4 done, IDLE"}}},
    /* delays */
    {"a delayed task runs after its delay and expires a timeout later",
     {{"submit 1 2 priority=2 delay=100; run; drive 99; run", "IDLE, @99 IDLE"},
      {"drive 1; pass 249; run 1", "@100 wanted, @349 turn 1, 1 done, MORE"},
      {"pass 1; run", "@350 late 2, 2 done, IDLE"}}},
    {"each delayed task has its timer, and what comes due while the host is asked joins",
     {{"submit 0 delay=300; submit 1 delay=400; submit 2 delay=200; submit 3 delay=100; pending",
       "4 pending"},
      {"drive 99; drive 1; run; pending", "@100 wanted, turn 3, 3 done, IDLE, 3 pending"},
      {"drive 300; run; pending", "@200 wanted, @400 turn 2, 2 done, turn 0, 0 done, turn 1, 1 "
				  "done, IDLE, 0 pending"}}}, /* wanted once, until it is run */
    {"a delayed task for which the service has no timer is refused",
     {{"given full; submit 1 delay=5; submit 2; stats submitted rejected; run",
       "EAGAIN, wanted, submitted=1, rejected=1, turn 2, 2 done, IDLE"}}},
    /* continuations */
    {"a continuation keeps its handle and its place",
     {{"submit 1 turns=3; submit 2; run", "wanted, turn 1, MORE"},
      {"run", "turn 1, MORE"},
      {"run; stats continued", "turn 1, 1 done, turn 2, 2 done, IDLE, continued=2"}}},
    {"a task that ends behind a more urgent one is gone",
     {{"submit 1 {submit 3 priority=1 {cancel 1}; should_yield}; run",
       "wanted, turn 1, yield, 1 done, late 3, GONE, 3 done, IDLE"}}},
    /* ends */
    {"a failing task is reported and not retried; the others go on",
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
    {"max_tasks bounds the tasks that have not ended",
     {{"given max=2; submit 1 2 error=EIO; submit 3", "wanted, EAGAIN"},
      {"run 1; submit 3; close", "turn 1, 1 failed EIO, MORE, 2 dropped, 3 dropped"}}},
    {"cancelled tasks do not count against max_tasks",
     {{"given max=4; submit 0 1; submit 2 3 bare; submit 4; cancel 2 3; submit 4 5 bare; submit 6",
       "wanted, EAGAIN, CANCELLED, CANCELLED, EAGAIN"},
      {"cancel 4 5; submit 6 7; submit 8; cancel 6 7; submit 8 9; submit 10",
       "CANCELLED, CANCELLED, EAGAIN, 6 cancelled, CANCELLED, 7 cancelled, CANCELLED, EAGAIN"},
      {"close", "0 dropped, 1 dropped, 8 dropped, 9 dropped"}}},
    /* expired tasks */
    {"an expired task that yields works for a slice in each turn",
     {{"submit 1 timeout=-1 eager units=13 each=1; run", "wanted, late 1, @5 left 8, MORE"},
      {"run", "late 1, @10 left 3, MORE"},
      {"run", "late 1, @13 left 0, 1 done, IDLE"}}},
    /* hosts */
    {"the executor gets one piece of work, and another for each slice",
     {{"given host; submit 0 1 units=4 each=2; waiting; stats host_requested; next; waiting; hold",
       "1 wait, host_requested=1, turn 0, @6 left 1, 1 wait"},
      {"next; waiting; hold", "turn 0, @8 left 0, 0 done, turn 1, @12 left 2, 1 wait"},
      {"next; waiting; stats host_requests slices host_requested",
       "turn 1, @16 left 0, 1 done, 0 wait, host_requests=3, slices=3, host_requested=0"}}},
    {"nothing is requested while the loop runs",
     {{"given host; submit 1 {submit 2; waiting}; next; waiting; stats host_requests",
       "turn 1, 0 wait, 1 done, turn 2, 2 done, 0 wait, host_requests=1"}}},
    {"a delayed task requests the host",
     {{"given host; submit 1 delay=3; waiting; drive 3; waiting",
       "0 wait, @3 1 wait, turn 1, 1 done"}}},
    {"refused work is offered again in each of the driver's turns",
     {{"given host; refuse 3; submit 1; drive 0; drive 0; waiting; drive 0; waiting",
       "0 wait, 1 wait, turn 1, 1 done"}}},
    {"an inline host runs a slice in each of the driver's turns",
     {{"given inline; submit 1 units=6 each=2; drive 0", "turn 1, @6 left 3"},
      {"drive 0", "turn 1, @12 left 0, 1 done"},
      {"drive 0", ""}}},
    {"a delayed task wakes the loop though no worker of the service is free",
     {{"given stuck; submit 1 delay=3; drive 2", ""},
      {"drive 1; run", "@3 wanted, turn 1, 1 done, IDLE"}}},
    {"a delayed task reaches its own executor though no worker of the service is free",
     {{"given host stuck; submit 1 delay=3; drive 3", "@3 turn 1, 1 done"}}},
    {"a delayed task survives an executor that refuses",
     {{"given default queued; submit 1 delay=3; refuse 3; advance 10", "@4 turn 1, 1 done"}}},
    /* work that the executor holds */
    {"a scheduler with an inline host ends on the driver's own thread",
     {{"given inline; submit 1; destroy",
       "1 dropped"}}}, /* its work waits for a turn of the driver that does not come */
    {"close waits for work that its executor holds",
     {{"given host; submit 1; close", "1 dropped, ETIMEDOUT"}, {"close", ""}}},
    {"destroy leaves such work behind, and the service waits for it",
     {{"given host; submit 1; destroy; close_service 1", "1 dropped, ETIMEDOUT"},
      {"close_service 0", ""}}},
};

Test(scheduler, scripts)
{
	PLAY(&scheduler_stage, NULL, scripts);
}

static int other_function(struct tw_turn *turn, void *arg)
{
	((struct job *)arg)->answer++;
	return TW_TURN_DONE;
}

static int go_on_elsewhere(struct job *job, struct tw_turn *turn)
{
	turn->next = other_function;
	return TW_TURN_AGAIN;
}

Test(scheduler, continuation_may_be_another_function)
{
	struct job job = JOB(&rig, 1);
	job.act = go_on_elsewhere;
	job_post(&job, TW_PRIORITY_NORMAL);
	expect_eq(run(), TW_SCHEDULER_RUN_MORE);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_eq(job.turns, 1);
	expect_eq(job.answer, 1);
	expect_told(&job, TW_FATE_FIRED, 0);
}

static int go_on_without_next(struct job *job, struct tw_turn *turn)
{
	turn->next = NULL;
	if (job->other)
		tw_scheduler_cancel(turn->scheduler, turn->task);
	return TW_TURN_AGAIN;
}

Test(scheduler, task_that_goes_on_without_a_continuation_is_done)
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
