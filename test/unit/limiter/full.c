/*
 * A limiter whose service has no timer left to give: all times are kept all the same, a tick later
 * at most. On a clock moved by hand.
 */
#include "test/support/limiter_script.h"

static const struct script without_timers[] = {
    {"a job keeps its times",
     {{"given full; submit 0 held; submit 1 queue=10; stats rejected", "rejected=0, start 0"},
      {"advance 12", "@10 1 timed out"},
      {"end 0", "@12 0 ok"}}},
    {"timers serve again when they can be had",
     {{"given limit=20 full; submit 0 held attempt=10; submit 1 held attempt=17; submit 2 held "
       "attempt=24",
       "start 0, start 1, start 2"},
      {"advance 5; empty; advance 2", ""},
      {"advance 30",
       "@10 stop 0 timed out, 0 timed out, @17 stop 1 timed out, 1 timed out, @24 stop 2 timed "
       "out, 2 timed out"},
      {"end 0; end 1; end 2", "@37 release 0, LATE, release 1, LATE, release 2, LATE"}}},
    {"cancelled and dropped ones are forgotten",
     {{"given full; submit 0..3 error=EIO retries=9 delay=1000",
       "start 0, start 1, start 2, start 3"},
      {"cancel 2", "2 cancelled, CANCELLED"},
      {"close drop", "0 dropped, 1 dropped, 3 dropped"},
      {"advance 2000", ""}}},
    {"one that leaves the line for an attempt without end is looked for no more",
     {{"given full; submit 0 held; submit 1 held queue=10", "start 0"},
      {"end 0", "0 ok, start 1"},
      {"advance 20; end 1", "@20 1 ok"}}},
    {"one that is completed is looked for no more",
     {{"given full; submit 0 held attempt=10 {end 0; -; drive 20}", "start 0, -, @20 0 ok"}}},
    {"the same with timers",
     {{"submit 0 held attempt=10 {end 0; -; drive 20}", "start 0, -, @20 0 ok"}}},
    {"tokens come back",
     {{"given full rate=1 interval=10; submit 0 1", "start 0, 0 ok"},
      {"advance 8", ""},
      {"advance 4; submit 2 total=1", "@10 start 1, 1 ok"},
      {"advance 3", "@13 2 timed out"}}},
    {"callbacks of timed-out jobs are for the executor",
     {{"given limit=2 full; submit 0 held attempt=5; submit 1 held bare attempt=5",
       "start 0, start 1"},
      {"drive 7; stats timed_out; -", "@7 timed_out=2, -, stop 0 timed out, 0 timed out"},
      {"end 0; end 1", "release 0, LATE, LATE"}}},
};

Test(limiter_full, without_timers)
{
	PLAY(&limiter_stage, NULL, without_timers);
}
