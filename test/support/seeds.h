/*
 * Programs under simulation, over many seeds: those that are the same each time, and new ones.
 *
 * The seed is printed with a failure; SIM_SEED=n in the environment of the test runs that program
 * alone, which is the same again.
 */
#ifndef TEST_SUPPORT_SEEDS_H
#define TEST_SUPPORT_SEEDS_H

#include <stdint.h>

#include "expect.h"
#include "tickwheel/sim.h"

/*
 * Calls program(seed) for `count` seeds, from 1 on, and as many that are new each time; or for
 * SIM_SEED alone.
 */
void for_each_seed(unsigned count, void (*program)(uint64_t seed));

/* Each twice: the traces that it returns must be equal. */
void for_each_seed_twice(unsigned count, uint64_t (*program)(uint64_t seed));

/* 0 .. bound - 1, from the program's seed; 0 if bound is 0. */
uint64_t drawn_below(uint64_t bound);

/* A few steps, or a drawn span of time. */
void sim_go_on(tw_sim *sim);

/*
 * A number computed from all events of a simulation and all facts that the program has told, in
 * order. It begins anew after each look.
 */
uint64_t trace_with_facts(const tw_sim *sim);
void tell_fact(uint64_t fact);

/* The one that is running. */
extern uint64_t seed_of_program;

#define sim_assert(condition, what) \
	cr_assert(condition, "SIM_SEED=%llu: %s", (unsigned long long)seed_of_program, what)

#define sim_eq(actual, wanted)                                                         \
	do {                                                                           \
		long long is_ = (long long)(actual), wanted_ = (long long)(wanted);    \
		cr_assert(is_ == wanted_, "SIM_SEED=%llu: %s is %lld, not %lld",       \
			  (unsigned long long)seed_of_program, #actual, is_, wanted_); \
	} while (0)

#endif
