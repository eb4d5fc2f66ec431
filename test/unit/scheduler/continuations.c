/* Tasks that go on in another turn, and urgent tasks that are submitted inside a turn. */
#include "test/support/scheduler_script.h"
#include "test/support/work_suite.h"

TestSuite(scheduler_continuations, .init = open_rig, .fini = close_rig, .timeout = 30);

static const struct script continuations[] = {
    {"a continuation keeps its handle and its place",
     {{"submit 1 turns=3; submit 2; run", "wanted, turn 1, MORE"},
      {"run", "turn 1, MORE"},
      {"run; stats continued", "turn 1, 1 done, turn 2, 2 done, IDLE, continued=2"}}},
    {"a task that ends behind a more urgent one is gone",
     {{"submit 1 {submit 3 priority=1 {cancel 1}; should_yield}; run",
       "wanted, turn 1, yield, 1 done, late 3, GONE, 3 done, IDLE"}}},
};

Test(scheduler_continuations, continuations)
{
	PLAY(&scheduler_stage, NULL, continuations);
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

Test(scheduler_continuations, continuation_may_be_another_function)
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
