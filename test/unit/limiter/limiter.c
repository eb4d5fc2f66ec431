/* The limiter: its permits, its results, completions. */
#include "test/support/limiter_script.h"

static const struct script basics[] = {
    {"the worked example",
     {{"given limit=3; submit 0 takes=2000; submit 1 takes=1000; submit 2 takes=3000",
       "start 0, start 1, start 2"},
      {"submit 3 takes=1500; submit 4 takes=500", ""},
      {"advance 4000", "@1000 1 ok, start 3, @2000 0 ok, start 4, @2500 3 ok, 4 ok, @3000 2 ok"},
      {"result 3 id queued run; result 4 id queued run",
       "@4000 id=4, queued=1000, run=1500, id=5, queued=2000, run=500"},
      {"stats run_mean_ns queue_mean_ns", "run_mean_ns=1600000000, queue_mean_ns=600000000"}}},
    {"the worked example with jobs on the driving thread",
     {{"given limit=3 inline; submit 0 takes=2000; submit 1 takes=1000; submit 2 takes=3000", ""},
      {"submit 3 takes=1500; submit 4 takes=500", ""},
      {"drive 4000",
       "start 0, start 1, start 2, @1000 1 ok, start 3, @2000 0 ok, start 4, @2500 3 ok, 4 ok, "
       "@3000 2 ok"}}},
    {"jobs run on the executor, never inside submit",
     {{"submit 0; submit 1 error=EIO; -", "-, start 0, 0 ok, start 1, 1 failed EIO"},
      {"result 0 id attempts; result 1 id", "id=1, attempts=1, id=2"}}},
    {"numbers are in the order of submits; higher priorities go first, equals in that order",
     {{"submit 0 held", "start 0"},
      {"submit 1..3 bare; submit 9 priority=1; submit 4 bare; submit 5 priority=-1; submit 6", ""},
      {"end 0",
       "0 ok, start 9, 9 ok, start 1, start 2, start 3, start 4, start 6, 6 ok, start 5, 5 ok"},
      {"result 1 id; result 9 id; result 4 id; result 6 id", "id=2, id=5, id=6, id=8"}}},
    {"a job is completed once; a second time is refused and counted",
     {{"given limit=2; submit 0 1 held", "start 0, start 1"},
      {"end 0 EIO; complete 0; end 0", "0 failed EIO, EALREADY, EALREADY"},
      {"end 1; stats refused_completions", "1 ok, refused_completions=2"}}},
    {"completing one that waits, with a bad error, and one that is not there",
     {{"submit 0 1 held", "start 0"},
      {"complete 1; complete 0 1; complete 0 -4096; complete 9",
       "EALREADY, EINVAL, EINVAL, EALREADY"},
      {"stats refused_completions running; destroy", "refused_completions=2, running=1, EBUSY"},
      {"end 0", "0 ok, start 1"},
      {"end 1", "1 ok"}}},
    {"one may be completed before its function returns; what that returns then is a second end",
     {{"submit 0 held {end 0; end 0 EIO}; submit 1 async error=EIO {end 1}",
       "start 0, EALREADY, 0 ok, start 1, 1 ok"},
      {"stats refused_completions succeeded", "refused_completions=2, succeeded=2"}}},
    {"completing a synchronous one is refused and counted",
     {{"submit 0 {end 0; misuse}; complete 0; stats refused_completions",
       "EINVAL, refused_completions=1, start 0, EINVAL, tw_job_complete: the job is synchronous: "
       "set TW_LIMITER_TASK_ASYNC, 0 ok"},
      {"stats refused_completions", "refused_completions=2"}}},
    {"a result that is not defined fails the job, and its permit comes back",
     {{"submit 0 async error=EPERM; submit 1 error=1; submit 2 3 error=2; submit 4 async error=2",
       "start 0, 0 failed EPERM, start 1, 1 failed EINVAL, start 2, 2 failed EINVAL, start 3, 3 "
       "failed EINVAL, start 4, 4 failed EINVAL"},
      {"submit 5 error=-4095; submit 6 error=-4096; submit 7 async error=-4096",
       "start 5, 5 failed -4095, start 6, 6 failed EINVAL, start 7, 7 failed EINVAL"},
      {"submit 8 async error=-2147483648; submit 9 error=2147483647; stats running",
       "running=0, start 8, 8 failed EINVAL, start 9, 9 failed EINVAL"},
      {"stats running failed", "running=0, failed=10"}}},
};

Test(limiter, basics)
{
	PLAY(&limiter_stage, NULL, basics);
}
