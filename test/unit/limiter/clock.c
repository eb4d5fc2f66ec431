/*
 * The clock decides what is late, and the driver keeps the times: whatever the executor does. On a
 * clock moved by hand.
 */
#include "test/support/limiter_script.h"

static const struct script scripts[] = {
    /* while the executor stands still */
    {"times are kept while the executor runs nothing",
     {{"given limit=2 stuck; submit 0 held attempt=5; submit 2 error=EIO retries=1 delay=20 "
       "total=8",
       "start 0, start 2, 2 failed EIO"}, /* no time for a retry */
      {"pause; submit 1 queue=3; drive 3; stats timed_out; state 1; hold",
       "@3 timed_out=1, SETTLED"},
      {"drive 2; stats timed_out; state 0; -",
       "@5 timed_out=2, SETTLED, -, 1 timed out, stop 0 timed out, 0 timed out"},
      {"end 0", "release 0, LATE"}}},
    {"retry delays and tokens are kept while the service's executor runs nothing",
     {{"given limit=2 rate=2 interval=10 stuck; submit 0 error=EIO fails=1 retries=1 delay=5; "
       "submit 1",
       "start 0, start 1, 1 ok"},
      {"advance 9", ""},
      {"advance 1", "@10 start 0, 0 ok"}}},
    {"the idle of a timeout is told on the executor",
     {{"pause; submit 0 held bare queue=5; on_idle 1", ""},
      {"drive 5; stats timed_out; wait_idle; -", "@5 timed_out=1, ETIMEDOUT, -, listener 1"},
      {"wait_idle", ""}}},
    {"an idle of which nobody is notified needs no executor",
     {{"pause; submit 0 held bare queue=5; drive 5; stats timed_out; wait_idle",
       "@5 timed_out=1"}}},
    /* what is late */
    {"an attempt that ends after its time is timed out; it is not stopped",
     {{"submit 0 stays=400 attempt=50", "start 0, @400 0 timed out"}, {"result 0 run", "run=400"}}},
    {"the same with the time in all",
     {{"submit 0 stays=400 total=50", "start 0, @400 0 timed out"}, {"result 0 run", "run=400"}}},
    {"an attempt that ends in time succeeds",
     {{"submit 0 stays=49 attempt=50 total=50", "start 0, @49 0 ok"}}},
    {"an attempt that ends after its time is tried again",
     {{"submit 0 stays=400 attempt=50 retries=1 delay=1", "start 0"},
      {"state 0; advance 2; result 0 attempts",
       "@400 RETRYING, @401 start 0, 0 ok, @402 attempts=2"}}},
    {"a job learns from the clock that it is past its time",
     {{"submit 0 attempt=50 {state 0; pass 60; state 0}",
       "start 0, RUNNING, @60 STOPPING, 0 timed out"}}},
    {"a job whose time passes while its submit waits for room is timed out",
     {{"given pending=1; submit 0 held", "start 0"},
      {"submit 1 held {submitted}; submit_waiting 2 total=50; pass 60; complete 0",
       "@60 0 ok, start 1, 2 timed out"},
      {"complete 1", "1 ok"}}},
    {"its submit does not wait for room beyond that time, though no permit comes back",
     {{"given pending=1; submit 0 held", "start 0"},
      {"submit 1 held; submit_waiting 2 total=50; drive 50; submitted; advance 1",
       "@51 2 timed out"},
      {"stats pending; complete 0", "pending=1, 0 ok, start 1"},
      {"complete 1", "1 ok"}}},
    {"completed after its time, an attempt is timed out, and so it is answered",
     {{"submit 0 held attempt=50", "start 0"},
      {"pass 60; end 0; end 0", "@60 0 timed out, LATE, EALREADY"}}},
    {"jobs whose times have passed in line are not started, and keep nobody",
     {{"submit 0 held; submit 2..31 bare queue=50; submit 32..61 bare total=50; submit 62",
       "start 0"},
      {"pass 60; end 0", "@60 0 ok, start 62, 62 ok"},
      {"stats timed_out", "timed_out=60"}}},
    {"a time in line that has passed is in the result",
     {{"submit 0 held; submit 1 queue=50; submit 2 total=50", "start 0"},
      {"pass 60; end 0", "@60 0 ok, 1 timed out, 2 timed out"},
      {"result 1 queued attempts; result 2 queued", "queued=60, attempts=0, queued=60"}}},
    /* One thread runs jobs of a limiter for 5 ms, then other work of the executor gets its turn. */
    {"a job that takes longer is alone",
     {{"submit 0..2 bare stays=10; waiting; next; waiting; hold", "1 wait, start 0, @10 1 wait"},
      {"pump", "start 1, @20 start 2"}}},
    {"jobs in a row for 5 ms",
     {{"submit 0..5 bare stays=2; waiting; next; waiting; hold",
       "1 wait, start 0, @2 start 1, @4 start 2, @6 1 wait"},
      {"pump", "start 3, @8 start 4, @10 start 5"}}},
};

Test(limiter_clock, scripts)
{
	PLAY(&limiter_stage, NULL, scripts);
}
