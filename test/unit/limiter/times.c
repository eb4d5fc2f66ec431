/* The limiter's times: retries, predicates, cancels, timeouts. */
#include <errno.h>

#include "test/support/limiter_script.h"

static const struct script retries[] = {
    {"delays grow to a cap",
     {{"submit 0 error=EIO fails=5 retries=5 delay=10 factor=200 cap=50", "start 0"},
      {"advance 300", "@10 start 0, @30 start 0, @70 start 0, @120 start 0, @170 start 0, 0 ok"},
      {"result 0 attempts; stats retried succeeded", "@300 attempts=6, retried=5, succeeded=1"}}},
    {"no permit is held while waiting",
     {{"submit 0 error=EIO fails=1 retries=1 delay=20; submit 1 takes=5", "start 0, start 1"},
      {"state 0; stats retrying", "RETRYING, retrying=1"},
      {"advance 10", "@5 1 ok"},
      {"stats running pending", "@10 running=0, pending=1"},
      {"advance 20", "@20 start 0, 0 ok"}}},
    {"none begins beyond the deadline",
     {{"submit 0 error=EIO retries=100 delay=10 deadline=35", "start 0"},
      {"advance 100", "@10 start 0, @20 start 0, @30 start 0, 0 failed EIO"}}},
    {"one that is in line at the deadline does not start",
     {{"given limit=2; submit 0 error=EIO attempt=5 retries=9 delay=10 deadline=25", "start 0"},
      {"submit 1 held attempt=5 retries=9 delay=10 deadline=25", "start 1"},
      {"advance 6", "@5 stop 1 timed out"},
      {"limit 1; complete 1; submit 2 held", "@6 LATE, start 2"},
      {"advance 19", ""},
      {"state 0 1", "@25 QUEUED, QUEUED"},
      {"advance 1", "@26 0 failed EIO, 1 timed out"},
      {"end 2; advance 50", "2 ok"}}},
    {"one whose turn comes after the deadline does not start, though the driver has not looked",
     {{"submit 0 error=EIO retries=9 delay=10 deadline=25; submit 1 held", "start 0, start 1"},
      {"advance 20", ""},
      {"pass 20; end 1", "@40 1 ok, 0 failed EIO"}}},
    {"one is waited for, though by the deadline the one after it could not be",
     {{"submit 0 error=EIO retries=9 delay=2000 factor=100000 deadline=500000", "start 0"},
      {"advance 3000", "@2000 start 0, 0 failed EIO"}}},
    {"one is waited for, though by the total timeout the one after it could not be",
     {{"submit 0 error=EIO retries=9 delay=2000 factor=100000 total=500000", "start 0"},
      {"advance 3000", "@2000 start 0, 0 failed EIO"}}},
    {"one that cannot begin before the total timeout is not waited for",
     {{"submit 0 error=EIO retries=9 delay=20 total=10", "start 0, 0 failed EIO"}}},
    {"a close drops those that wait, and no more are made",
     {{"given limit=2; submit 0 error=EIO retries=1 delay=20; submit 1 held retries=9 delay=20",
       "start 0, start 1"},
      {"close drop; result 0 attempts", "0 dropped, ETIMEDOUT, attempts=1"},
      {"end 1 EIO", "1 failed EIO"},
      {"advance 50", ""}}},
    {"a pause holds them back",
     {{"submit 0 error=EIO fails=1 retries=1 delay=5", "start 0"},
      {"pause; advance 20; state 0", "@20 QUEUED"},
      {"resume", "start 0, 0 ok"},
      {"result 0 queued", "queued=15"}}},
};

Test(limiter_times, retries)
{
	PLAY(&limiter_stage, NULL, retries);
}

static const struct script predicates[] = {
    {"refuses a retry; its delay is of no matter",
     {{"submit asks 0 error=ENOENT retries=5 delay=3 refuse chosen=-7",
       "start 0, asked about ENOENT of 1, 3, 0 failed ENOENT"}}},
    {"sees and changes the delay",
     {{"given hooks; submit asks 0 error=EIO fails=2 retries=2 delay=3 factor=300 chosen=40",
       "started 0, start 0, asked about EIO of 1, 3, retried 0 after 40"},
      {"advance 100",
       "@40 started 0, start 0, asked about EIO of 2, 9, retried 0 after 40, @80 started 0, "
       "start 0, settled 0, 0 ok, idle"}}},
    {"is asked only about retries that the rest allows",
     {{"submit asks 0 error=EIO retries=0", "start 0, 0 failed EIO"},
      {"submit asks 1 retries=3", "start 1, 1 ok"},
      {"submit asks 2 error=EIO retries=9 deadline=19 chosen=20", /* the deadline binds it */
       "start 2, asked about EIO of 1, 0, 2 failed EIO"}}},
    {"decides about timed-out attempts, whose error and value are ignored",
     {{"submit asks 0 held attempt=10 retries=3 refuse", "start 0"},
      {"advance 15", "@10 stop 0 timed out"},
      {"complete 0 EIO; -", "@15 LATE, -, asked about ETIMEDOUT of 1, 0, 0 timed out"}}},
    {"a negative delay fails the job",
     {{"submit asks 0 error=EIO retries=5 chosen=-2",
       "start 0, asked about EIO of 1, 0, 0 failed EINVAL"},
      {"misuse; stats retried",
       "retry.allow: delay_ns has a value that the header does not allow, retried=0"}}},
    {"the same after a timeout",
     {{"submit asks 0 held attempt=10 retries=3 chosen=-2", "start 0"},
      {"advance 15", "@10 stop 0 timed out"},
      {"complete 0 EIO; -", "@15 LATE, -, asked about ETIMEDOUT of 1, 0, 0 failed EINVAL"}}},
    {"a delay that is too long fails the job",
     {{"submit asks 0 error=EIO retries=5 chosen=9223372036854775807",
       "start 0, asked about EIO of 1, 0, 0 failed EINVAL"},
      {"misuse; stats retried",
       "retry.allow: delay_ns has a value that the header does not allow, retried=0"}}},
    {"may call the limiter, but not wait for it",
     {{"submit 0 error=EIO retries=5 asks {wait 0; misuse; wait_idle 1; misuse; close drain 1; "
       "misuse; destroy; misuse; submit 1; stats pending; cancel 0}",
       "start 0, asked about EIO of 1, 0, EDEADLK, tw_job_wait: called from inside what it would "
       "wait for, EDEADLK, tw_limiter_wait_idle: called from inside what it would wait for, "
       "EDEADLK, tw_limiter_close: called from inside what it would wait for, EDEADLK, "
       "tw_limiter_destroy: called from inside what it would wait for, pending=2, RUNNING, 0 "
       "cancelled EIO, start 1, 1 ok"}}},
};

Test(limiter_times, predicates)
{
	PLAY(&limiter_stage, NULL, predicates);
}

static const struct script attempts[] = {
    {"an answer to another attempt never counts, however many there were",
     {{"submit 0 held retries=9 delay=1", "start 0"},
      {"end 0 EIO; advance 1; end 0 EIO; advance 1; end 0 EIO; advance 1; end 0 EIO; advance 1",
       "@1 start 0, @2 start 0, @3 start 0, @4 start 0"},
      {"end 0 EIO; advance 1; end 0 EIO; advance 1; end 0 EIO; advance 1; end 0 EIO; advance 1",
       "@5 start 0, @6 start 0, @7 start 0, @8 start 0"},
      {"end 0 attempt=1; end 0 attempt=2; end 0 attempt=8; end 0 attempt=10; stats running",
       "EALREADY, EALREADY, EALREADY, EALREADY, running=1"},
      {"end 0 attempt=9; result 0 attempts", "0 ok, attempts=9"}}},
    {"the answer that `stop` asked for ends no later attempt",
     {{"submit 0 held retries=9 delay=1 attempt=10", "start 0"},
      {"advance 15", "@10 stop 0 timed out"},
      {"end 0 EIO; advance 2", "@15 LATE, @16 start 0"},
      {"end 0 ECANCELED attempt=1; state 0; end 0", "@17 EALREADY, RUNNING, 0 ok"}}},
};

Test(limiter_times, attempts)
{
	PLAY(&limiter_stage, NULL, attempts);
}

static const struct script cancels[] = {
    {"in line: settles",
     {{"submit 0 held; submit 1", "start 0"},
      {"state 1; cancel 1; cancel 1; state 1", "QUEUED, 1 cancelled, CANCELLED, GONE, GONE"},
      {"end 0", "0 ok"}}},
    {"waiting for a retry: settles",
     {{"submit 0 error=EIO retries=3 delay=5", "start 0"},
      {"cancel 0; result 0 attempts", "0 cancelled, CANCELLED, attempts=1"},
      {"advance 20", ""}}},
    {"running: is told once, settles when it ends, and is not retried",
     {{"given limit=2; submit 0 held retries=3; submit 1 held", "start 0, start 1"},
      {"is_cancelled 0", "goes on"},
      {"cancel 0; cancel 0; is_cancelled 0", "stop 0 cancelled, RUNNING, RUNNING, is cancelled"},
      {"end 0 EINTR", "0 cancelled EINTR"},
      {"cancel 1", "stop 1 cancelled, RUNNING"},
      {"end 1", "1 ok"},
      {"stats cancelled", "cancelled=1"}}},
    {"a second one does not wait for the stop under way; the job does, and its permit does not",
     {{"submit 0 held in_stop {cancel 0; is_cancelled 0; end 0 EINTR; cancel 0; stats running; "
       "released 0}",
       "start 0"},
      {"cancel 0",
       "stop 0 cancelled, RUNNING, is cancelled, RUNNING, running=0, not released, 0 cancelled "
       "EINTR, RUNNING"}}},
    {"stops may cancel each other's jobs",
     {{"given limit=2; submit 0 1 held in_stop {cancel 0 1}", "start 0, start 1"},
      {"cancel 0",
       "stop 0 cancelled, RUNNING, stop 1 cancelled, RUNNING, RUNNING, RUNNING, RUNNING"},
      {"end 0; end 1", "0 ok, 1 ok"}}},
    {"an attempt that ends inside of its stop settles after it",
     {{"submit 0 held in_stop {end 0 EINTR; -}", "start 0"},
      {"cancel 0", "stop 0 cancelled, -, 0 cancelled EINTR, RUNNING"}}},
};

Test(limiter_times, cancels)
{
	PLAY(&limiter_stage, NULL, cancels);
}

static const struct script timeouts[] = {
    {"in line: settles",
     {{"submit 0 held; submit 1 queue=10", "start 0"},
      {"advance 9", ""},
      {"advance 1; stats timed_out", "@10 1 timed out, timed_out=1"},
      {"end 0", "0 ok"}}},
    {"in line: does not count the run",
     {{"submit 0 takes=50 queue=10", "start 0"}, {"advance 100", "@50 0 ok"}}},
    {"of an attempt: settles, and keeps its permit to its end",
     {{"submit 0 held attempt=10; submit 1", "start 0"},
      {"advance 10", "@10 stop 0 timed out, 0 timed out"},
      {"result 0 run; state 0; cancel 0; is_cancelled 0", "run=10, SETTLED, GONE, is cancelled"},
      {"advance 10; stats running late; wait_idle", "@20 running=1, late=1, ETIMEDOUT"},
      {"end 0; end 0", "release 0, LATE, EALREADY, start 1, 1 ok"}}},
    {"of an attempt with retries left: is tried again when it has ended",
     {{"submit 0 held attempt=10 retries=1 delay=5", "start 0"},
      {"advance 12", "@10 stop 0 timed out"},
      {"end 0; advance 5", "@12 LATE, @17 start 0"},
      {"advance 10; end 0", "@27 stop 0 timed out, 0 timed out, LATE"}}},
    {"of an attempt whose retry would come too late: settles",
     {{"submit 0 held attempt=10 total=30 retries=3 delay=50", "start 0"},
      {"advance 10", "@10 stop 0 timed out, 0 timed out"},
      {"end 0", "release 0, LATE"}}},
    {"in all: in line, in a run and in a wait",
     {{"given limit=2; submit 0 error=EIO retries=9 delay=8 total=10; submit 1 held total=10",
       "start 0, start 1"},
      {"submit 3 held; submit 2 total=10", "start 3"},
      {"advance 9", ""},
      {"state 0 2", "@9 QUEUED, QUEUED"},
      {"advance 1", "@10 stop 1 timed out, 1 timed out, 2 timed out, 0 timed out"},
      {"end 1; end 3", "release 1, LATE, 3 ok"}}},
};

Test(limiter_times, timeouts)
{
	PLAY(&limiter_stage, NULL, timeouts);
}
