/*
 * User code that takes long delays no settle: a job whose total timeout passes meanwhile has
 * settled, and threads that wait for it are answered. On a clock moved by hand.
 */
#include "test/support/limiter_script.h"

TestSuite(limiter_slow_user, .timeout = 60);

/* The driver gets to run, and no thread of the executor does. The release comes last of all. */
static const struct script slow_ones[] = {
    {"a predicate",
     {{"submit 0 error=EIO total=10 retries=3 delay=1 asks {drive 15; state 0; wait 0; released "
       "0}",
       "start 0, asked about EIO of 1, 1, @15 SETTLED, was timed out, not released, 0 timed out"},
      {"stats timed_out pending; advance 50", "timed_out=1, pending=0"}}},
    {"a predicate whose job was cancelled before its turn is not called",
     {{"submit 0 held retries=3 delay=1 asks", "start 0"},
      {"complete 0 EIO; cancel 0; -", "RUNNING, -, 0 cancelled EIO"}}},
    {"a predicate that takes longer than the attempt could",
     {{"submit 0 held attempt=10 retries=3 delay=1 asks {drive 15; state 0}", "start 0"},
      {"complete 0 EIO", "asked about EIO of 1, 1, @15 RETRYING"},
      {"advance 1; complete 0", "@16 start 0, 0 ok"}}},
    {"a predicate whose bad answer comes late, and is ignored; `done` comes after it",
     {{"submit 0 error=EIO total=10 retries=3 delay=1 chosen=-1 asks {drive 15; pump; released "
       "0}",
       "start 0, asked about EIO of 1, 1, @15 not released, 0 timed out"},
      {"advance 50; stats timed_out", "@65 timed_out=1"}}},
    {"a predicate whose turn comes after the timeout is not called",
     {{"submit 0 held total=10 retries=3 delay=1 asks", "start 0"},
      {"complete 0 EIO; state 0; stats pending running; drive 15; state 0; wait 0; hold",
       "RETRYING, pending=1, running=0, @15 SETTLED, was timed out"},
      {"advance 50", "0 timed out"}}},
    {"the same of a job whose result is kept",
     {{"submit 0 held keep no_done total=10 retries=3 delay=1 asks", "start 0"},
      {"complete 0 EIO; state 0; drive 15; state 0; released 0; hold",
       "RETRYING, @15 SETTLED, not released"},
      {"advance 50; released 0; wait 0", "release 0, @65 released, was timed out"}}},
    {"a predicate runs on the executor: who completes a job may be one that must not block",
     {{"submit 0 held total=10 retries=3 delay=1 asks", "start 0"},
      {"end 0 EIO; -", "-, asked about EIO of 1, 1"},
      {"advance 2; complete 0", "@1 start 0, @2 0 ok"}}},
    {"a cancel waits for the predicate: what it may use is the job's",
     {{"submit 0 error=EIO total=10 retries=3 delay=1 asks {cancel 0; pump; released 0}",
       "start 0, asked about EIO of 1, 1, RUNNING, not released, 0 cancelled EIO"}}},
    {"started",
     {{"given hooks; submit 0 error=EIO total=10 retries=3 delay=1 in_started {drive 15; state 0; "
       "released 0}",
       "started 0, @15 SETTLED, not released, start 0, stop 0 timed out, settled 0, 0 timed "
       "out, idle"},
      {"advance 50; stats timed_out", "@65 timed_out=1"}}},
    {"started, of a job without `stop`",
     {{"given hooks; submit 0 no_stop error=EIO total=10 retries=3 delay=1 in_started {drive 15; "
       "released 0}",
       "started 0, @15 not released, start 0, settled 0, 0 timed out, idle"},
      {"advance 50; stats timed_out", "@65 timed_out=1"}}},
    {"started, and settled is not called before it has returned: of the total time",
     {{"given hooks; submit 0 held total=10 in_started {advance 20; -}; advance 1",
       "started 0, @20 -, start 0, stop 0 timed out, settled 0, 0 timed out"},
      {"end 0", "@21 release 0, idle, LATE"}}},
    {"started, and settled is not called before it has returned: of an attempt's",
     {{"given hooks; submit 0 held attempt=10 in_started {advance 20; -}; advance 1",
       "started 0, @20 -, start 0, stop 0 timed out, settled 0, 0 timed out"},
      {"end 0", "@21 release 0, idle, LATE"}}},
    {"retried",
     {{"given hooks; submit 0 error=EIO total=10 retries=3 delay=9 in_retried {state 0; drive 15; "
       "state 0}",
       "started 0, start 0, retried 0 after 9, RETRYING, @15 SETTLED, settled 0, 0 timed out, "
       "idle"},
      {"advance 1; stats timed_out", "@16 timed_out=1"}}},
    {"stop, while the attempt ends and would be retried; `done` comes after it",
     {{"submit 0 held attempt=5 total=10 retries=3 delay=1 in_stop {complete 0 EIO; drive 15; "
       "state 0}",
       "start 0"},
      {"advance 6; state 0", "@5 stop 0 timed out, LATE, @20 SETTLED, 0 timed out, @21 GONE"},
      {"advance 50", ""}}},
    {"a function that stays after its completion; it is not stopped",
     {{"submit 0 held total=10 retries=3 delay=1 {end 0 EIO; drive 15; state 0; released 0}",
       "start 0, @15 SETTLED, not released, 0 timed out"},
      {"advance 50; stats timed_out", "@65 timed_out=1"}}},
};

Test(limiter_slow_user, slow_ones)
{
	PLAY(&limiter_stage, NULL, slow_ones);
}
