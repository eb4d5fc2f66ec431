/*
 * Tests as tables of {given, call, wanted}.
 *
 * A script opens its stage as its first call says, if that is "given ...". Each step makes
 * calls, which ';' separates, and names all that is said meanwhile, which ", " separates: answers
 * of calls, except 0, and what callbacks write down. So a step finds what is missing as well as
 * what is too much.
 *
 * What is said at another instant than what was said before begins with it: "@30 " is 30 ms after
 * the start. The first word of a call is its verb. Numbers follow ("3", or "3..5" for three of
 * them, or an error as EIO), flags ("held"), and options ("queue=30"). Calls in braces are made
 * inside of a callback, and those in brackets inside of a release:
 * "submit 0 {cancel 1; submit 2}".
 *
 * Given, for each stage with a service: queued: the service's executor is the stage's queue;
 * own: it is script_executor; stuck: it runs nothing; refused: it takes nothing; small: the service
 * has few timers; full: it has none left, until `empty`.
 *
 * Verbs of each stage (times are in ms):
 *
 *   -                     says "-", between what was said before and after
 *   context               says which of the contexts 1 .. 9 the thread has, or 0; set_context N
 *   advance MS            tick by tick, and the queue runs; drive MS: the queue does not run;
 *                         pass MS: nobody looks
 *   next, pump            runs the queue's next ticket; all; give_back: returns the next one
 *   waiting               says how many tickets wait
 *   hold                  the queue is not pumped at the end of this step
 *   refuse N              the queue refuses N submits; -1: all
 *   fill, empty           takes all timers that the service has left; gives them back
 *   schedule              a timer of the service; close_service MS; destroy_service (it
 *                         answers EBUSY); pending: how many timers it has
 *   no_memory, memory     from here on, to here; there was a request; unasked: there was none
 *   poor {CALLS}          made by a new thread, for which there is no memory
 *   beside N {CALLS}      made by a new thread; joined N: when it has ended
 *   pause MS              of real time; queued N: until N tickets wait
 *   at_sleep {CALLS}      made by this thread when it is about to sleep on a futex; once
 *   stand N               in a callback or thread: waits until let N; begun N waits for it
 */
#ifndef TEST_SUPPORT_SCRIPT_H
#define TEST_SUPPORT_SCRIPT_H

#include "queue_executor.h"
#include "rig.h"

enum { SCRIPT_STEPS = 24, SCRIPT_NUMBERS = 64, SCRIPT_WORDS = 32, SCRIPT_TEXT = 4096 };

struct step {
	const char *call, *wanted;
};

struct script {
	const char *name;
	struct step steps[SCRIPT_STEPS]; /* to the first one without a call */
};

/* A call, taken apart. */
struct words {
	int n;
	const char *word[SCRIPT_WORDS];
	int numbers;
	int64_t number[SCRIPT_NUMBERS];  /* the plain ones */
	const char *in_run, *in_release; /* calls; until the script's end */
};

bool has_word(const struct words *words, const char *word);
int64_t option_of(const struct words *words, const char *name, int64_t otherwise);

uint64_t ms_of(const struct words *words, const char *name); /* an option in ms, as ns; or 0 */

struct verb {
	const char *name; /* NULL: the end of the table */
	void (*call)(const struct words *words);
};

struct stage {
	void (*open)(const struct words *given);
	void (*close)(void);
	struct rig *rig;
	struct queue_executor *queue; /* pumped at the end of each step; or NULL */
	const struct verb *verbs;
};

/* For open: what is given of the service. */
struct tw_service_config script_service(const struct words *given);

/* `more` has verbs of the file's own, or is NULL. */
void play(const struct stage *stage, const struct verb *more, const struct script *scripts,
	  size_t n);

#define PLAY(stage, more, scripts) play(stage, more, scripts, sizeof(scripts) / sizeof *(scripts))

/* The service's, if `own` is given. */
extern tw_executor *script_executor;

/* What is given of each script, beside its own words. */
extern const char *script_given;

/* Makes these calls of the script that plays; NULL: none. */
void play_calls(const char *calls);

/* The context of this number; NULL for 0. */
void *script_context(int64_t n);

/* Writes down that something has happened. Outside of scripts it is ignored. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Numbers the steps of this process, from 1; 0: no script has played. */
unsigned current_step(void);

/* Says an answer, unless it is 0: "EIO" for -EIO, else the number. */
void say_answer(int answer);

/* Says what a cancel or a close answered: "CANCELLED", "RUNNING", "GONE", "FINISHED", "SELF". */
void say_outcome(int outcome);

/* "EIO" for -EIO; or a number. Valid until the next call. */
const char *error_name(int error);

/* A table of the members of a struct of gauges, all of them uint64_t. */
struct gauge {
	const char *name;
	size_t offset;
};

#define GAUGE_OF(type, name)                       \
	{                                          \
#name, offsetof(struct type, name) \
	}

/* Says "name=value" for each of the call's words that the table has. */
void say_gauges(const struct words *words, const struct gauge *gauges, const void *from);

/* Repeats the statement for all plain numbers of a call. */
#define EACH_NUMBER(words, n) \
	for (int i_ = 0, n; i_ < (words)->numbers && (n = (int)(words)->number[i_], true); i_++)

#endif
