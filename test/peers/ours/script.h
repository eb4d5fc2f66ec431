/*
 * A script: one step a line, which both players carry out, and the trace that they must agree on.
 *
 *     row kind KNOB...      the first line: which player, which variant of it, its numbers
 *     OP ARG...             a step of the script
 *     on ID N OP ARG...     a step inside the N-th run of task ID
 *
 * All arguments are numbers. The trace has a line "> INDEX" for each step of the script, followed
 * by what happened in it. README.md lists the operations of each row.
 */
#ifndef TEST_PEERS_SCRIPT_H
#define TEST_PEERS_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "tickwheel/layers.h"

enum { STEPS = 512, ARGS = 8, IDS = 64, WORD = 16 };

#define MS TW_MILLISECOND

struct step {
	int on; /* task whose run carries it out; -1: the script itself */
	int nth;
	char op[WORD];
	int64_t args[ARGS]; /* 0 where the line has none */
};

struct script {
	char row[WORD], kind[WORD];
	int64_t knobs[ARGS];
	struct step steps[STEPS];
	int count;
	int runs[IDS]; /* of each task, so far */
	int runs_in_all;
};

/* Prints a line of the trace. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

typedef void step_fn(void *player, const struct step *step, bool inside);

/* Reads up to a line "end". False: end of file, or not a script. */
bool script_read(struct script *script);

/* Carries out the steps of the script itself. */
void script_play(struct script *script, step_fn *fn, void *player);

/* Carries out the steps that belong to this run of a task. */
void script_run(struct script *script, int id, step_fn *fn, void *player);

bool step_is(const struct step *step, const char *op);
bool kind_is(const struct script *script, const char *kind);

/* Ends the process with a message if a call that must succeed fails. */
void must(int result, const char *call);
#define MUST(call) must((int)(call), #call)

/* A service on a manual clock that starts at `start_ns`; callbacks run inline. */
struct fixture {
	tw_clock *clock;
	tw_service *service;
	uint64_t start_ns;
};
void service_open(struct fixture *fixture, uint64_t tick_ns);
void service_close(struct fixture *fixture);
int64_t service_ms(const struct fixture *fixture);

/* The rows. */
void play_actions(struct script *script);
void play_scheduler(struct script *script);
void play_limiter(struct script *script);
void play_timers(struct script *script);

#endif
