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
};

Test(scheduler, scripts)
{
	PLAY(&scheduler_stage, NULL, scripts);
}
