/*
 * Pause, close and idle of a limiter: what still runs, what is dropped, and who is notified.
 */
#include "test/support/limiter_script.h"
#include "test/support/pooled_limiter.h"

static const struct script scripts[] = {
    /* pauses */
    {"one that is created paused runs nothing until resume",
     {{"given paused; submit 0; advance 10", ""}, {"resume; resume", "@10 start 0, 0 ok"}}},
    {"the running finish, and none starts",
     {{"submit 0..2 held", "start 0"},
      {"pause; end 0; advance 5; pause", "0 ok"},
      {"resume", "@5 start 1"},
      {"end 1", "1 ok, start 2"},
      {"end 2", "2 ok"}}},
    {"what the executor was given already is held back",
     {{"submit 0; pause", ""}, {"resume", "start 0, 0 ok"}}},
    {"one that has left the line is running, and no other starts",
     {{"given limit=3 hooks; submit 0 in_started {pause}; submit 1 2; advance 5",
       "started 0, start 0, settled 0, 0 ok"},
      {"stats running pending", "@5 running=0, pending=2"},
      {"resume",
       "started 1, start 1, settled 1, 1 ok, started 2, start 2, settled 2, 2 ok, idle"}}},
    {"one that refuses jobs while it is paused",
     {{"given paused_refuses; pause; submit 0; stats rejected", "EBUSY, rejected=1"},
      {"resume; submit 0", "start 0, 0 ok"}}},
    /* closes */
    {"a drop drops the line, waits for the running and refuses jobs",
     {{"submit 0..2 held", "start 0"},
      {"close drop; submit 3; stats dropped",
       "1 dropped, 2 dropped, ETIMEDOUT, ESHUTDOWN, dropped=2"},
      {"end 0", "0 ok"},
      {"close drop; close drain 1000; submit 3; stats added", "ESHUTDOWN, added=3"}}},
    {"a drain drops what waits when its timeout has passed",
     {{"submit 0 1 held", "start 0"},
      {"close drain 1", "1 dropped, ETIMEDOUT"},
      {"end 0; close drain", "0 ok"}}},
    {"a drain from a job lets the old run and refuses the new",
     {{"submit 0 {close drain; on_idle 99; submit 9}; submit 1 error=EIO fails=1 retries=1 "
       "delay=3; "
       "submit 2 takes=7; submit 3",
       "start 0, ETIMEDOUT, ESHUTDOWN, 0 ok, start 1, start 2"},
      {"advance 5", ""},
      {"advance 10", "@7 2 ok, start 3, 3 ok, start 1, 1 ok, listener 99"}}},
    {"a dropped job's done function cannot submit any more",
     {{"submit 0 in_done {submit 1}; close drop", "0 dropped, ESHUTDOWN"}}},
    {"a drop without waiting tells when the running have ended",
     {{"submit 0 held; submit 1", "start 0"},
      {"no_memory; on_idle 99; memory", "ENOMEM"},
      {"submit 2", ""},
      {"close drop; on_idle 99", "1 dropped, 2 dropped, ETIMEDOUT"},
      {"end 0", "0 ok, listener 99"},
      {"close drain; on_idle 99", "listener 99"}}},
    {"a drain without a timeout begins, and drops nothing",
     {{"submit 0 1 held", "start 0"},
      {"close drain; submit 2; stats dropped", "ETIMEDOUT, ESHUTDOWN, dropped=0"},
      {"end 0", "0 ok, start 1"},
      {"end 1; close drain", "1 ok"}}},
    {"after a drop the executor calls `done` of a job that times out, and the tick thread does not",
     {{"submit 0 held total=2", "start 0"},
      {"close drop; drive 5; stats timed_out; -",
       "ETIMEDOUT, @5 timed_out=1, -, stop 0 timed out, 0 timed out"},
      {"end 0", "release 0, LATE"}}},
    {"if the executor refuses forever, the close calls `done`, and the driver does not",
     {{"given limit=2; refuse -1; submit 0; submit 1 queue=5; advance 10", ""},
      {"close drop; advance 2", "@10 1 timed out, 0 dropped"}}},
    {"the same of a running job: each close calls the callbacks that wait",
     {{"submit 0 held total=5; refuse -1", "start 0"},
      {"close drop; drive 9; stats timed_out; -", "ETIMEDOUT, @9 timed_out=1, -"},
      {"close drop", "stop 0 timed out, 0 timed out, ETIMEDOUT"},
      {"end 0; refuse 0; advance 1; close drop", "release 0, LATE"}}},
    {"an executor that refuses twice calls `done` later",
     {{"submit 0 held total=5", "start 0"},
      {"refuse 2; close drop; drive 5; -; drive 4; -",
       "ETIMEDOUT, @5 -, @9 -, stop 0 timed out, 0 timed out"},
      {"end 0", "release 0, LATE"}}},
    {"if the executor refuses once before the drop, the drop calls `done`",
     {{"given limit=2; submit 0 held total=8; submit 1 held total=5", "start 0, start 1"},
      {"refuse 1; drive 5; -; close drop; -; drive 5; -",
       "@5 -, stop 1 timed out, 1 timed out, ETIMEDOUT, -, @10 -, stop 0 timed out, 0 timed out"},
      {"end 0; end 1", "release 0, LATE, release 1, LATE"}}},
    {"a `done` that a drop calls cannot wait for a job that the drop calls next",
     {{"given limit=2; submit 0 held total=5 in_done {wait 1 1000}; submit 1 held retries=1 asks",
       "start 0, start 1"},
      {"refuse -1; drive 5; end 1 EIO; close drop",
       "@5 stop 0 timed out, 0 timed out, EDEADLK, 1 failed EIO, ETIMEDOUT"},
      {"end 0; close drop; refuse 0", "release 0, LATE"}}},
    /* idle */
    {"each listener is called once, in order",
     {{"submit 0 1 held; on_idle 1..3", "start 0"},
      {"end 0; wait_idle", "0 ok, ETIMEDOUT, start 1"},
      {"end 1 EIO; wait_idle", "1 failed EIO, listener 1, listener 2, listener 3"},
      {"on_idle 4", "listener 4"}, /* immediately */
      {"submit 2", "start 2, 2 ok"}}},
    {"results are collected in the order of settling",
     {{"given limit=3 collect; on_idle 1", "listener 1"},
      {"submit 0..3 held; on_idle 1", "start 0, start 1, start 2"},
      {"cancel 3; end 2; end 0 EIO", "3 cancelled, CANCELLED, 2 ok, 0 failed EIO"},
      {"cancel 1; end 1 ECANCELED",
       "stop 1 cancelled, RUNNING, 1 cancelled, listener 1, result 3 cancelled, result 2 ok, "
       "result 0 failed EIO, result 1 cancelled"},
      {"on_idle 2", /* a later listener gets them too */
       "listener 2, result 3 cancelled, result 2 ok, result 0 failed EIO, result 1 cancelled"},
      {"submit 4 held", "start 4"},
      {"end 4; on_idle 3", "4 ok, listener 3, result 4 ok"}}}, /* a new collection */
};

Test(limiter_close, scripts)
{
	PLAY(&limiter_stage, NULL, scripts);
}

static void note_queued(void *arg, const struct tw_job_result *result)
{
	*(uint64_t *)arg = result->queued_ns;
}

/* On the system's clock: the drain waits by it. */
Test(limiter_close, job_that_a_drain_drops_was_queued_for_as_long_as_the_drain_waited)
{
	uint64_t queued_ns = 0;
	struct tw_limiter_task task = {
	    .size = sizeof task, .fn = job_succeeds, .arg = &queued_ns, .done = note_queued};
	open_pooled((struct tw_service_config){.workers = 0}, 1);
	expect_eq(tw_limiter_set_paused(limiter, true), 0);
	expect_eq(tw_limiter_submit_task(limiter, &task, NULL), 0);
	expect_eq(tw_limiter_close(limiter, TW_CLOSE_DRAIN, 20 * MS), 0);
	expect_ge(queued_ns, 20 * MS);
	close_pooled();
}
