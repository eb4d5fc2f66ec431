/*
 * A close of the service and the completions of groups: each is called once, before close answers
 * 0.
 */
#include "test/support/timer_script.h"

TestSuite(close_then, .timeout = 60);

/* Nobody has driven the service since: close calls what it finds. */
static const struct script scripts[] = {
    {"a close that drops",
     {{"group 0 1 2 3; timer 0 in=9 group=1; timer 1 in=9 group=2; then 0; then 1; then 2",
       "0 cancelled, 1 cancelled"},
      {"group_destroy 2; close drop; then 3; group_destroy 3",
       "done 0, done 1, done 2, ESHUTDOWN"}}},
    {"a close that runs",
     {{"group 0 1 2 3; timer 0 in=9 group=1; timer 1 in=9 group=2; then 0; then 1; then 2",
       "0 cancelled, 1 cancelled"},
      {"group_destroy 2; close run; then 3; group_destroy 3",
       "done 0, done 1, done 2, ESHUTDOWN"}}},
    {"a close that drains",
     {{"group 0 1 2 3; timer 0 in=9 group=1; timer 1 in=9 group=2; then 0; then 1; then 2",
       "0 cancelled, 1 cancelled"},
      {"group_destroy 2; close drain; then 3; group_destroy 3",
       "done 0, done 1, done 2, ESHUTDOWN"}}},
    {"where the executor refuses",
     {{"given refused; group 0 1 2 3; timer 0 in=9 group=1; timer 1 in=9 group=2; then 0; then 1; "
       "then 2",
       "0 cancelled, 1 cancelled"},
      {"group_destroy 2; close drop; then 3; group_destroy 3",
       "done 0, done 1, done 2, ESHUTDOWN"}}},
    {"a member may end its group while a close runs it",
     {{"group 0; timer 0 in=1 group=0 {then 0}; timer 1 in=9 group=0; close run",
       "run 0 closing, 1 cancelled, 0 fired, done 0"}}},
    {"a close that times out leaves it pending, and the next one calls it",
     {{"given workers=1; group 0; timer 0 in=1 group=0 {stand 0; then 0}; drive 1; begun 0",
       "@1 run 0"},
      {"close drop 0; let 0; close drop", "ETIMEDOUT, 0 fired, done 0"}}},
    /* close calls it while it waits for the only worker */
    {"a callback may wait for a completion",
     {{"given workers=1; group 0 1; timer 0 in=1 group=0 {then 1 {let 1}; stand 1}; drive 1; begun "
       "1",
       "@1 run 0"},
      {"close drop", "done 1, 0 fired"}}},
};

Test(close_then, each_mode_calls_the_completions)
{
	PLAY(&timer_stage, NULL, scripts);
}
