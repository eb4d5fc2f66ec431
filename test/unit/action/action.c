/* Actions on a timer service: arming, phase, closing, failure. */
#include "test/support/action_script.h"

static const struct script runs[] = {
    {"runs once after its delay",
     {{"arm 1 delay=5; state 1; advance 4", "ARMED"},
      {"advance 100; state 1", "@5 run 1, @104 IDLE"}}},
    {"one that does not rearm leaves no timer, and can be armed again",
     {{"arm 1 delay=1; advance 1; pending", "@1 run 1, 0 pending"},
      {"again 1 delay=3; pending; advance 100", "1 pending, @4 run 1"}}},
    {"rearmed with the same delay, it keeps its phase",
     {{"arm 0 delay=10 rearms=9 every=10 stays=3; drive 1000",
       "@10 run 0, @20 run 0, @30 run 0, @40 run 0, @50 run 0, @60 run 0, @70 run 0, @80 run 0, "
       "@90 run 0, @100 run 0"}}},
    {"held up, it leaves out instants and keeps its phase",
     {{"arm 0 delay=10 rearms=3 every=10 stays=25; drive 1000",
       "@10 run 0, @40 run 0, @70 run 0, @100 run 0"}}},
    {"rearmed with another delay, it starts anew",
     {{"arm 0 delay=10 rearms=1 every=20 stays=3; drive 1000", "@10 run 0, @33 run 0"}}},
    {"rearmed twice in a run, it has one next run in phase",
     {{"arm 0 delay=10 stays=3 {again 0 delay=10; again 0 delay=10}; drive 25; pending",
       "@10 run 0, @20 run 0, @25 1 pending"}}},
    {"a delay that is too long is refused, and changes nothing",
     {{"arm 1 delay=5; again 1 delay=4611686018428; stats refused; advance 100",
       "ERANGE, refused=1, @5 run 1"}}},
    {"one without a timer is not armed; one that has a timer can still be moved",
     {{"given small; arm 1 delay=1000; create 2; fill; again 2 delay=1000; state 2",
       "EAGAIN, IDLE"},
      {"again 1 delay=5; advance 5; empty", "@5 run 1"}}},
    {"armed again before its run, it gets the new state and delay, and no second timer",
     {{"arm 1 delay=5; create 2; again 1 delay=9 state=2; pending", "1 pending"},
      {"again 1 delay=2 state=2; pending; advance 100", "1 pending, @2 run 2"}}},
};

Test(action, runs)
{
	PLAY(&action_stage, NULL, runs);
}

static const struct script ends[] = {
    {"closed, it does not run, and does nothing when armed",
     {{"arm 1 delay=1; close 1; close 1; pending; again 1 delay=1; pending",
       "CANCELLED, GONE, 0 pending, ECANCELED, 0 pending"},
      {"state 1; run 1; advance 100", "CLOSED, ECANCELED"}}},
    {"it may close or destroy itself in its run",
     {{"arm 1 delay=1 rearms=1 every=1 {close 1; again 1 delay=1}; advance 100",
       "@1 run 1, SELF, ECANCELED"},
      {"arm 2 delay=1 {close_wait 2}; advance 1", "@101 run 2, SELF"},
      {"arm 3 delay=1 rearms=1 every=1 {destroy 3}; advance 100; pending",
       "@102 run 3, RUNNING, @201 0 pending"},
      {"destroy 1 2; stats actions", "GONE, GONE, actions=0"}}},
    {"run by hand, it has had the run that it is armed for",
     {{"arm 1 delay=1; run 1; pending; advance 100", "run 1, 0 pending"},
      {"create 2 fails=7; run 2; state 2; run 2", "@100 run 2, 7, CLOSED, ECANCELED"}}},
    {"run by hand inside a run, it must be another one",
     {{"arm 1 delay=1 {run 1}; arm 2 delay=3600000; arm 3 delay=1 {run 2}; advance 9; pending",
       "@1 run 1, EBUSY, run 3, run 2, @9 0 pending"}}},
    {"one that fails is closed though it had rearmed, and is told",
     {{"arm 1 delay=1 fails=42 rearms=1 every=1; arm 2 delay=2; advance 100",
       "@1 run 1, failed 42 of 1, @2 run 2"},
      {"state 1; pending; stats failures untold", "@100 CLOSED, 0 pending, failures=1, untold=0"}}},
    {"one that fails with nobody to tell is counted",
     {{"given silent; arm 1 delay=1 fails=-1; advance 9; stats failures untold",
       "@1 run 1, @9 failures=1, untold=1"}}},
    {"it may be destroyed where its failure is told",
     {{"given [destroy 1]; arm 1 delay=1 fails=42; advance 9", "@1 run 1, failed 42 of 1, GONE"}}},
    {"one that comes due during a flush is appended, not nested",
     {{"given queued; arm 1 delay=1 {pass 1; poll}; arm 2 delay=2; drive 1; next; stats flushes",
       "@1 run 1, @2 run 2, flushes=1"}}},
    {"appended to a flush that fails, it is closed, and the next flush runs",
     {{"given queued cancel_batch; arm 1 delay=1 fails=5 {pass 1; poll}; arm 2 delay=2; arm 3 "
       "delay=10; drive 1",
       "@1 run 1, @2 failed 5 of 1 and closes 1"},
      {"state 2; stats closed_by_failure; drive 10", "CLOSED, closed_by_failure=1, @12 run 3"}}},
    {"two that come due at one instant fail by themselves",
     {{"given queued cancel_batch; arm 1 2 delay=1 fails=5; drive 1",
       "@1 run 1, failed 5 of 1, run 2, failed 5 of 2"},
      {"stats closed_by_failure flushes", "closed_by_failure=0, flushes=2"}}},
};

Test(action, ends)
{
	PLAY(&action_stage, NULL, ends);
}
