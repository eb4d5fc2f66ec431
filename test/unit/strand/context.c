/*
 * The context of who submits goes with a strand's task, and is released once, whatever becomes of
 * the task.
 */
#include "test/support/strand_script.h"

static const struct script contexts[] = {
    {"each of three tasks runs under its own; what a run sets is over with it",
     {{"set_context 1; submit 1 {context; set_context 9}", "run 1, context 1"},
      {"set_context 2; submit 2 {context}; set_context 3; submit 3 delay=500 {context} [context]",
       "run 2, context 2"},
      {"set_context 9; advance 503; context", "@500 run 3, context 3, context 3, @503 context 9"}}},
    {"a task without one has none",
     {{"submit 1 {context}; submit 2 delay=10 {context}; set_context 9; advance 12",
       "run 1, context 0, @10 run 2, context 0"}}},
    {"a series keeps it to its end",
     {{"set_context 1; submit 1 every=10 {context; set_context 8} [context]; set_context 9",
       "run 1, context 1"},
      {"advance 20; cancel 1; context", "@10 run 1, context 1, @20 run 1, context 1, 1 cancelled, "
					"context 1, CANCELLED, context 9"}}},
    {"a series runs under the one that its spec names",
     {{"set_context 9; submit 1 every=10 skip named=3 {context} [context]; advance 10",
       "run 1, context 3, @10 run 1, context 3"},
      {"cancel 1; context", "1 cancelled, context 3, CANCELLED, context 9"}}},
    {"it surrounds a release by cancel and close",
     {{"set_context 1; submit 1 [context]; submit 2 delay=10 [context]; hold", ""},
      {"set_context 2; submit 3 [context]; submit 4 delay=10 [context]; hold", ""},
      {"set_context 9; cancel 1 2; close; context",
       "1 cancelled, context 1, CANCELLED, 2 cancelled, context 1, CANCELLED, 3 cancelled, "
       "context 2, 4 cancelled, context 2, context 9"},
      {"set_context 3; submit 6 plain", "ESHUTDOWN"}}},
};

Test(strand_context, contexts)
{
	PLAY(&strand_stage, NULL, contexts);
}
