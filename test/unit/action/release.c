/* Releases of actions: called exactly once when an action has ended, whatever ends it. */
#include "test/support/action_script.h"
#include "test/support/actions.h"

TestSuite(action_release, .timeout = 30);

static const struct script releases[] = {
    {"follows a close or a destroy at once, and may not wait for the action or end its scheduler",
     {{"given asap caller; arm 1 release [close_wait 1; destroy_scheduler]; close 1",
       "wanted, unwanted, 1 released cancelled, SELF, EDEADLK, CANCELLED"},
      {"arm 2 release [close 2; destroy_scheduler]; close_wait 2",
       "wanted, unwanted, 2 released cancelled, SELF, EDEADLK, CANCELLED"},
      {"arm 3 release [close 3; destroy_scheduler]; destroy 3; destroy 1 2",
       "wanted, unwanted, 3 released cancelled, SELF, EDEADLK, CANCELLED, GONE, GONE"}}},
    {"waits for the run that ends its own action",
     {{"given asap caller; arm 1 release {close 1; -}; flush; destroy 1",
       "wanted, run 1, SELF, -, 1 released cancelled, GONE"},
      {"arm 2 release {destroy 2; -}; flush", "wanted, run 2, RUNNING, -, 2 released cancelled"},
      {"arm 3 release fails=3 {close 3; destroy 3; -}; flush",
       "wanted, run 3, SELF, RUNNING, -, 3 released cancelled, 3"}}},
    {"is not called for an action that rests",
     {{"given asap caller; arm 1 release; flush", "wanted, run 1"},
      {"destroy 1", "1 released cancelled, GONE"}}},
    {"tells of a failure",
     {{"given asap caller; arm 1 release fails=5; arm 2 release fails=6; run 2; flush; destroy 1 2",
       "wanted, run 2, 2 released fired, 6, run 1, 1 released fired, 5, GONE, GONE"}}},
    {"lets actions go that another one's failure closes",
     {{"given asap caller cancel_batch; arm 1 release {destroy 1} [destroy 1]; arm 2 fails=9 "
       "release {destroy 2} [destroy 2]",
       "wanted"},
      {"arm 3 release [destroy 3]; arm 4 release [destroy 4]; flush",
       "run 1, RUNNING, 1 released cancelled, RUNNING, run 2, RUNNING, 3 released dropped, "
       "RUNNING, 4 released dropped, RUNNING, 2 released cancelled, RUNNING, 9"},
      {"stats actions", "actions=0"}}},
    {"none is wanted", {{"given asap caller; create 1; destroy 1", "GONE"}}},
};

Test(action_release, releases)
{
	PLAY(&action_stage, NULL, releases);
}
