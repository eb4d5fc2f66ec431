/*
 * Tests as tables of {given, call, wanted}.
 *
 * A script opens its stage as `given` says. Each step makes calls, which ';' separates, and names
 * all that is said meanwhile, which ", " separates: answers of calls, except 0, and what callbacks
 * write down. So a step finds what is missing as well as what is too much.
 *
 * What is said at another instant than what was said before begins with it: "@30 " is 30 ms after
 * the start. The first word of a call is its verb. Numbers follow ("3", or "3..5" for three of
 * them, or an error as EIO), flags ("held"), and options ("queue=30").
 */
#ifndef TEST_SUPPORT_SCRIPT_H
#define TEST_SUPPORT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCRIPT_STEPS = 24, SCRIPT_NUMBERS = 64, SCRIPT_WORDS = 32 };

struct step {
	const char *call, *wanted;
};

struct script {
	const char *name, *given;
	struct step steps[SCRIPT_STEPS]; /* to the first one without a call */
};

/* A call, taken apart. */
struct words {
	int n;
	const char *word[SCRIPT_WORDS];
	int numbers;
	int64_t number[SCRIPT_NUMBERS]; /* the plain ones */
};

bool has_word(const struct words *words, const char *word);
int64_t option_of(const struct words *words, const char *name, int64_t otherwise);

struct verb {
	const char *name; /* NULL: the end of the table */
	void (*call)(const struct words *words);
};

struct stage {
	void (*open)(const struct words *given);
	void (*close)(void);
	void (*end_step)(void); /* what follows each step's calls; or NULL */
	uint64_t (*now_ms)(void);
	const struct verb *verbs;
};

/* `more` has verbs of the file's own, or is NULL. */
void play(const struct stage *stage, const struct verb *more, const struct script *scripts,
	  size_t n);

#define PLAY(stage, more, scripts) play(stage, more, scripts, sizeof(scripts) / sizeof *(scripts))

/* Writes down that something has happened. Outside of scripts it is ignored. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Numbers the steps of this process, from 1; 0: no script has played. */
unsigned current_step(void);

/* Says an answer, unless it is 0: "EIO" for -EIO, else the number. */
void say_answer(int answer);

/* "EIO" for -EIO; or a number. Valid until the next call. */
const char *error_name(int error);

/* A table of the members of a struct of gauges, all of them uint64_t. */
struct gauge {
	const char *name;
	size_t offset;
};

/* Says "name=value" for each of the call's words that the table has. */
void say_gauges(const struct words *words, const struct gauge *gauges, const void *from);

#endif
