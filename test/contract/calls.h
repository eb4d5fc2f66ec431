/*
 * What calls really answer. Each room has tables of calls, a row each, and puts them into
 * situations: with good and with bad arguments, on closed objects, from inside a callback, in a
 * forked child, and without memory. A bad argument that the misuse hook hears of has its row in
 * test/unit/misuse alone. The program prints a line for each answer; test/contract/answers.sh
 * compares the lines with the lists of the headers.
 *
 * To delete a public function: delete its rows.
 */
#ifndef TEST_CONTRACT_CALLS_H
#define TEST_CONTRACT_CALLS_H

#include <stdbool.h>

#include "tickwheel/layers.h"

#define MS TW_MILLISECOND
#define TOO_LONG (TW_MAX_DELAY_NS + 1)
#define STRUCT(type, ...) (&(struct type){.size = sizeof(struct type), __VA_ARGS__})
#define PLAIN(type) (&(struct type){.size = sizeof(struct type)})
#define SMALL(type) (&(struct type){.size = 1})

/* A row. Without memory, the call is repeated while a request of it is refused. */
#define CALL(call)                                     \
	do {                                           \
		if (row_begins())                      \
			do                             \
				row_ends(#call, call); \
			while (row_again());           \
	} while (0)

/* A structure of the right size whose next byte is not 0. */
#define BIG(type, ...)                                                           \
	(&(struct {                                                              \
		  struct type known;                                             \
		  uint64_t more;                                                 \
	  }){.known = {.size = sizeof(struct type) + 8, __VA_ARGS__}, .more = 1} \
	      .known)

bool row_begins(void);
void row_ends(const char *call, long long answer);
bool row_again(void);

/* Named situations in which a table of calls is read. */
void situation(const char *name);
void in_child(void (*calls)(void));
void in_thread(void (*calls)(void)); /* and waits for it */
void without_memory(void (*calls)(void));

/* For what must work in any case: ends the program if not. */
#define MUST(call) must(#call, call)
void must(const char *call, long long answer);

/* A function that waits until the test lets it go on, and a mark that it has begun. */
struct hold {
	_Atomic int begun, over;
};
void hold(void *arg);
void await_begun(struct hold *held);
void let_go(struct hold *held);

/* Functions for timers and tasks. */
void nothing(void *arg);
void run_calls(void *calls); /* of a struct inside */

/* A release that is a cancellation point: the call that runs it is none. */
void testcancel(void *arg, enum tw_fate fate);

struct inside {
	void (*calls)(void);
	_Atomic int over;
};
void await_over(struct inside *inside);

/* An executor without ops; and one that refuses everything. */
extern tw_executor unsound, refusing;

/* The rooms. */
void timers(void);
void groups(void);
void services(void);
void statistics(void);
void pools(void);
void manuals(void);
void clocks(void);
void strands(void);
void semaphores(void);
void limiters(void);
void jobs(void);
void schedulers(void);
void actions(void);
void simulations(void);

#endif
