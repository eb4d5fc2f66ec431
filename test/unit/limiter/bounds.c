/* The limiter's bounds: queued jobs, priorities, callbacks, queries. On a clock moved by hand. */
#include "test/support/limiter_script.h"

static const struct script lines[] = {
    {"more than may wait are refused",
     {{"given pending=2; submit 0 held; hold", ""},
      {"submit 1 2 held; submit 3 held; submit 4 too_late", "EAGAIN, ETIMEDOUT, start 0"},
      {"stats rejected added", "rejected=2, added=3"},
      {"end 0; submit 3 held", "0 ok, start 1"},
      {"end 1", "1 ok, start 2"},
      {"end 2", "2 ok, start 3"},
      {"end 3; result 3 id", "3 ok, id=4"}}},
    {"a cancelled one gives its place in line back",
     {{"given pending=1; submit 0 held", "start 0"},
      {"submit 1; submit 2; cancel 1; submit 2", "EAGAIN, 1 cancelled, CANCELLED"},
      {"end 0", "0 ok, start 2, 2 ok"}}},
    {"retries find their place though the line is full, and count",
     {{"given pending=1; submit 0 error=EIO fails=1 retries=1 delay=5", "start 0"},
      {"stats retrying; submit 1", "retrying=1, EAGAIN"},
      {"advance 5; submit 2", "@5 start 0, 0 ok, start 2, 2 ok"}}},
    {"a job for which a permit is free does not count as pending",
     {{"given limit=8 pending=1; submit 0..9 held",
       "EAGAIN, start 0, start 1, start 2, start 3, start 4, start 5, start 6, start 7"},
      {"stats running pending rejected", "running=8, pending=1, rejected=1"},
      {"end 0; submit 9 held", "0 ok, start 8"},
      {"end 1; end 2; end 3; end 4; end 5; end 6; end 7; end 8",
       "1 ok, 2 ok, 3 ok, 4 ok, 5 ok, 6 ok, 7 ok, 8 ok, start 9"},
      {"end 9", "9 ok"}}},
    {"all count while nothing may start",
     {{"given limit=8 pending=1; pause; submit 0 1", "EAGAIN"},
      {"resume; submit 1", "start 0, 0 ok, start 1, 1 ok"}}},
    {"a job without a token counts as pending",
     {{"given limit=8 pending=1 rate=2 interval=10; submit 0..3",
       "EAGAIN, start 0, 0 ok, start 1, 1 ok"},
      {"advance 10; submit 3", "@10 start 2, 2 ok, start 3, 3 ok"}}},
    {"without a queue a job is refused unless a permit is free",
     {{"given limit=2 no_queue; submit 0 1 2 held", "EAGAIN, start 0, start 1"},
      {"submit 2 held", "EAGAIN"},
      {"end 0; submit 2 held", "0 ok, start 2"},
      {"end 1; end 2; pause; submit 0", "1 ok, 2 ok, EAGAIN"}}},
    {"without a queue a job is refused while its permits are not free",
     {{"given limit=4 no_queue; submit 0 held permits=2; submit 1 held permits=3",
       "EAGAIN, start 0"},
      {"submit 1 held permits=2", "start 1"},
      {"end 0; end 1", "0 ok, 1 ok"}}},
};

Test(limiter_bounds, lines)
{
	PLAY(&limiter_stage, NULL, lines);
}

static const struct script priorities[] = {
    {"a job in line moves behind the others of its new priority, unless it has it already",
     {{"submit 0 held", "start 0"},
      {"submit 1..4; submit 5 priority=7", ""},
      {"priority 3 7; priority 1 -4; priority 2 0", ""},
      {"end 0", "0 ok, start 5, 5 ok, start 3, 3 ok, start 2, 2 ok, start 4, 4 ok, start 1, 1 ok"},
      {"priority 3 1", "GONE"}}},
    {"the time in line counts through a change",
     {{"submit 0 held; submit 1; submit 2 queue=30", "start 0"},
      {"advance 20; priority 1 3; priority 2 2; advance 20", "@30 2 timed out"},
      {"end 0", "@40 0 ok, start 1, 1 ok"},
      {"result 1 queued", "queued=40"}}},
    {"a running or retrying job uses it in its next stay",
     {{"submit 1 error=EIO fails=1 retries=1 delay=5", "start 1"},
      {"state 1; priority 1 9; submit 0 held", "RETRYING, start 0"},
      {"priority 0 -9; submit 2; advance 10", ""},
      {"end 0", "@10 0 ok, start 1, 1 ok, start 2, 2 ok"},
      {"submit 3 held", "start 3"},
      {"end 3", "3 ok"}}},
    {"a light job that moves before a heavy one starts",
     {{"given limit=2; submit 0 held; submit 1 held permits=2; submit 2", "start 0"},
      {"priority 2 1", "start 2, 2 ok"},
      {"end 0", "0 ok, start 1"},
      {"end 1", "1 ok"}}},
};

Test(limiter_bounds, priorities)
{
	PLAY(&limiter_stage, NULL, priorities);
}

static const struct script callbacks[] = {
    {"a callback may call anything",
     {{"submit 0 {submit 1}; submit 2 in_done {submit 3}; submit 4 no_stop [submit 5]",
       "start 0, 0 ok, start 2, 2 ok, start 4, 4 ok, start 1, 1 ok, start 3, 3 ok, start 5, 5 "
       "ok"}}},
    {"the context of the submit goes with the job: its function, release and the listener",
     {{"set_context 1; submit 0 {context} [context]; on_idle 1 {context}; set_context 2",
       "start 0, context 1, 0 ok, context 1, listener 1, context 1"},
      {"context", "context 2"}}},
    {"its done function, and a retry's predicate",
     {{"set_context 1; submit 0 in_done {context}; submit 1 error=EIO retries=1 asks {context}",
       "start 0, 0 ok, context 1, start 1, asked about EIO of 1, 0, context 1"},
      {"advance 1", "@1 start 1, 1 failed EIO"}}},
    {"waits that would wait for their caller are refused",
     {{"submit 0 {wait 0; wait 0 1; wait_idle 1; close drop 1}; submit 1",
       "start 0, EDEADLK, EDEADLK, EDEADLK, EDEADLK, 0 ok, start 1, 1 ok"},
      {"submit 0 in_done {wait 0 1; wait_idle 1; close drop 1; wait_idle; close drop}",
       "start 0, 0 ok, EDEADLK, EDEADLK, EDEADLK, ETIMEDOUT, ETIMEDOUT"},
      {"submit 1", "ESHUTDOWN"}}},
    {"a done function does not wait for one that its thread calls next",
     {{"given pending=9 paused; submit 0 in_done {wait 1; wait 1 1}; submit 1; close drop",
       "0 dropped, ETIMEDOUT, EDEADLK, 1 dropped"}}},
};

Test(limiter_bounds, callbacks)
{
	PLAY(&limiter_stage, NULL, callbacks);
}

static const struct script queries[] = {
    {"a kept result is there until a wait has taken it",
     {{"submit 0 held keep", "start 0"},
      {"state 0; wait 0", "RUNNING, ETIMEDOUT"},
      {"end 0 EIO; state 0; cancel 0", "0 failed EIO, SETTLED, GONE"},
      {"wait 0; state 0; wait 0", "was failed EIO, GONE, GONE"},
      {"submit 1", "start 1, 1 ok"}, /* not kept */
      {"wait 1", "GONE"}}},
    {"kept results end with the limiter", {{"submit 0 keep total=1000", "start 0, 0 ok"}}},
    {"events tell the story",
     {{"given paused hooks; submit 0; submit 1 error=EIO fails=1 retries=1 delay=5; submit 2", ""},
      {"cancel 2", "settled 2, 2 cancelled, CANCELLED"},
      {"resume; advance 10",
       "started 0, start 0, settled 0, 0 ok, started 1, start 1, retried 1 after 5, @5 started "
       "1, start 1, settled 1, 1 ok, idle"}}},
};

Test(limiter_bounds, queries)
{
	PLAY(&limiter_stage, NULL, queries);
}
