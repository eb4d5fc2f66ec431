/* Close and destroy of strands. */
#include "test/support/strand_script.h"

static const struct script scripts[] = {
    /* closes */
    {"cancels all that has not run, and refuses what comes",
     {{"submit 1 4; submit 2 delay=1; submit 3 every=1 first=1; cancel 4; close; cancel 1",
       "4 cancelled, CANCELLED, 1 cancelled, 3 cancelled, 2 cancelled, GONE"},
      {"stats cancelled closed; submit 5 plain; submit 5; submit 6 delay=1",
       "cancelled=4, closed=1, ESHUTDOWN, ESHUTDOWN, ESHUTDOWN"},
      {"close; close_wait; advance 5", ""}}},
    {"from a task, nothing follows; the task fires",
     {{"submit 1 {close}; submit 2", "run 1, 2 cancelled, ETIMEDOUT"}}},
    {"a series that closes ends as cancelled",
     {{"submit 1 every=1 {close}; advance 5", "run 1, ETIMEDOUT, 1 cancelled"}}},
    {"waiting for oneself is refused and changes nothing",
     {{"submit 1 {close_wait}; submit 2", "run 1, EDEADLK, run 2"}}},
    {"touches no other strand", {{"other 1; close", "run 1"}}},
    {"a release cannot submit any more",
     {{"submit 1 [submit 2]; close", "1 cancelled, ESHUTDOWN"}}},
    /* destroys */
    {"a task may destroy its strand",
     {{"submit 1 {destroy}; submit 2; submit 3 delay=10", "run 1, 2 cancelled, 3 cancelled"}}},
    {"a task that has destroyed its strand cannot close the service, for which it would wait",
     {{"submit 1 {close_service; destroy; close_service}", "run 1, EBUSY, EDEADLK"}}},
    {"the same on the inline executor",
     {{"given inline; submit 1 {close_service; destroy; close_service}; advance 1",
       "run 1, EBUSY, EDEADLK"}}},
    {"what is handed over keeps the service until it has been",
     {{"submit 1 plain; destroy; close_service 1; close_service 0; schedule",
       "ETIMEDOUT, ETIMEDOUT, ESHUTDOWN"},
      {"close_service 0", ""}}},
    {"a close of the service with a manual drive gets through with what a destroyed strand left",
     {{"given inline; submit 1; destroy; close_service", "1 cancelled"}}},
    {"the timer of a destroyed strand is gone",
     {{"submit 1 delay=1; destroy; advance 5", "1 cancelled"}}},
    {"leaves no timer behind when some tasks have come due",
     {{"submit 1 delay=1; submit 2 delay=3600000; drive 3; destroy",
       "@3 1 cancelled, 2 cancelled"}}},
};

Test(strand_close, scripts)
{
	PLAY(&strand_stage, NULL, scripts);
}
