/* Actions and contexts, and executors that refuse. */
#include "test/support/action_script.h"

static const struct script seams[] = {
    {"each run is under the context of its arming",
     {{"set_context 1; arm 1 delay=1 rearms=2 every=1 {context; set_context 9}", ""},
      {"set_context 0; arm 2 delay=1 {context}; set_context 8; advance 9; context",
       "@1 run 1, context 1, run 2, context 0, @2 run 1, context 1, @3 run 1, context 1, @9 "
       "context 8"}}},
    {"so is that of a queue",
     {{"given queue alone; set_context 1; arm 1 {context}; context",
       "run 1, context 1, context 1"}}},
    {"so are those of a batch, and immediates",
     {{"given asap caller; set_context 1; arm 1 {context}; immediate 2 {context}",
       "wanted, number 1"},
      {"set_context 8; flush; context", "run 1, context 1, run 2, context 1, context 8"}}},
    {"a timer that its executor refuses comes a tick later",
     {{"given queued; arm 1; refuse -1; advance 40; stats runs", "@40 runs=0"},
      {"refuse 0; advance 2; stats refused", "@41 run 1, @42 refused=0"}}},
    {"a frame that its executor refuses comes a tick later",
     {{"given frame queued; arm 1; refuse -1; advance 40; stats runs", "@40 runs=0"},
      {"refuse 0; advance 2; stats refused", "@41 run 1, @42 refused=0"}}},
};

Test(action_seams, seams)
{
	PLAY(&action_stage, NULL, seams);
}
