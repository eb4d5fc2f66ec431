/*
 * The static probes: each fires once for each event, on each path of a call, and carries the call's
 * answer.
 */
#include "test/support/timer_script.h"
#include "test/support/tracer.h"

TestSuite(service_tracing, .timeout = 30);

enum { SERVICE, OUTCOME = 3 };

/* Says which have fired since the last time, and how often; and what a cancel has answered. */
static void say_probes(const struct words *words)
{
	static const char *const names[] = {"arm", "file", "reset", "handover",
					    "run", "done", "cancel"};
	for (int i = 0; i < 7; i++) {
		unsigned count = tracer_count(names[i]);
		if (!count)
			continue;
		const uint64_t *arguments = tracer_last(names[i])->arguments;
		expect_eq(arguments[SERVICE], (uintptr_t)timer_stage.rig->service);
		say("%s %u", names[i], count);
		if (i == 6)
			say_outcome((int)arguments[OUTCOME]);
	}
	tracer_forget();
}

static void forget(const struct words *words)
{
	tracer_forget();
}

static const struct verb verbs[] = {{"probes", say_probes}, {"forget", forget}, {NULL, NULL}};

static const struct script scripts[] = {
    {"each step of a timer's life",
     {{"forget; timer 0 in=5 plain; timer 1 in=25920000000 plain; probes; drive 2; probes",
       "arm 2, @2 file 2"},
      {"reset 0 by=10; probes; drive 20; probes", "reset 1, @12 run 0, @22 run 1, done 1"},
      {"reset 0 by=10; probes; cancel 1; probes",
       "ENOENT, reset 1, CANCELLED, cancel 1, CANCELLED"}}},
    {"a cancel, at each of its ends",
     {{"forget; timer 0 in=10 plain; timer 1 in=10; timer 2 in=10 plain; reset 2 by=30; probes",
       "arm 3, reset 1"},
      {"cancel 0; probes; cancel 0; probes",
       "CANCELLED, cancel 1, CANCELLED, GONE, cancel 1, GONE"},
      {"cancel 1; probes; cancel 1; probes",
       "1 cancelled, CANCELLED, cancel 1, CANCELLED, GONE, cancel 1, GONE"},
      {"cancel 2; probes", "CANCELLED, cancel 1, CANCELLED"}}},
    {"the same where the cancel need not wait",
     {{"forget; timer 0 in=10 plain; timer 1 in=10; timer 2 in=10 plain; reset 2 by=30; probes",
       "arm 3, reset 1"},
      {"cancel_wait 0; probes; cancel_wait 0; probes",
       "CANCELLED, cancel 1, CANCELLED, GONE, cancel 1, GONE"},
      {"cancel_wait 1; probes; cancel_wait 1; probes",
       "1 cancelled, CANCELLED, cancel 1, CANCELLED, GONE, cancel 1, GONE"},
      {"cancel_wait 2; probes", "CANCELLED, cancel 1, CANCELLED"}}},
    {"a cancel of what runs, and of what is released",
     {{"forget; timer 0 in=1 plain {probes; cancel 0; probes}; timer 1 in=2 {probes; cancel_wait "
       "1; "
       "probes} "
       "[probes; cancel 1; probes]",
       ""},
      {"drive 1", "@1 run 0, arm 2, file 2, run 1, RUNNING, cancel 1, RUNNING"},
      {"drive 1", "@2 run 1, run 1, done 1, SELF, cancel 1, RUNNING, 1 fired, done 1, RUNNING, "
		  "cancel 1, RUNNING"}}},
    {"a batch that is handed over",
     {{"given queued; forget; timer 0 in=1 plain; probes; hold; drive 1; probes; pump; probes",
       "arm 1, @1 file 1, handover 1, run 0, run 1, done 1"}}},
    {"a batch of another executor",
     {{"forget; timer 0 in=1 other plain; probes; hold; drive 1; probes; pump; probes",
       "arm 1, @1 file 1, handover 1, run 0, run 1, done 1"}}},
};

/* Where there are no probes nothing can be said. */
Test(service_tracing, follows_the_scripts)
{
	if (tracer_open())
		PLAY(&timer_stage, verbs, scripts);
}
