/*
 * A table of misuses: a row is a call with bad input, the error that it answers, and the text that
 * the misuse hook gets. test/lint/misuse.sh checks that each text of the library has a row.
 */
#ifndef TEST_UNIT_MISUSE_ROWS_H
#define TEST_UNIT_MISUSE_ROWS_H

#include "test/support/expect.h"

/* Opens what the rows need, and hears the texts. */
void misuse_open(void);
void misuse_close(void);

/* On a manual clock, manually driven; and one with a tick thread. */
extern tw_service *manual, *threaded;
extern tw_clock *manual_clock;
extern tw_pool *pool;
extern tw_executor unsound;

void misuse_fn(void *arg);

/* Forgets what was heard, and compares it. */
void misuse_begin(void);
void misuse_expect(const char *call, long long is, int answer, const char *text);

#define ROW(answer, text, call)                           \
	do {                                              \
		misuse_begin();                           \
		misuse_expect(#call, call, answer, text); \
	} while (0)

/* The hook is called, although the answer cannot say so. */
#define TOLD(text, call)                          \
	do {                                      \
		misuse_begin();                   \
		(void)(call);                     \
		misuse_expect(#call, 0, 0, text); \
	} while (0)

/* Each public function that begins with an object: NULL for that. */
#define NULL_ROW(function, name, ...) \
	ROW(-EINVAL, #function ": " name " is NULL", function(__VA_ARGS__))

#define STRUCT(type, ...) (&(struct type){.size = sizeof(struct type), __VA_ARGS__})
#define SMALL(type) (&(struct type){.size = 1})
#define SMALL_TEXT(type) #type ": size 1 is too small: use TW_INIT(" #type ")"

/* A struct that says it is smaller than any; a parameter, or a member of a struct, out of range. */
#define SMALL_ROW(type, call) ROW(-EINVAL, SMALL_TEXT(type), call)
#define BAD_ROW(error, function, what, ...) \
	ROW(error, #function ": " what BAD, function(__VA_ARGS__))

/* What follows a call and its bad parameter, or the bad member of its struct. */
#define BAD " has a value that the header does not allow"
#define SYSTEM_REFUSES \
	"the system refuses a thread with this stack_size, affinity or sched_priority"
#define WAITS_INSIDE "called from inside what it would wait for"

#endif
