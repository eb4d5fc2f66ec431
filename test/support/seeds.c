#include "seeds.h"

#include <stdlib.h>

#include "test/support/random.h"
#include "test/support/rounds.h"

uint64_t seed_of_program;
static uint64_t facts, random_state;

uint64_t drawn_below(uint64_t bound)
{
	return bound ? random_below(&random_state, bound) : 0;
}

void tell_fact(uint64_t fact)
{
	facts = (facts ^ fact) * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

uint64_t trace_with_facts(const tw_sim *sim)
{
	uint64_t told = facts;
	facts = 0;
	return tw_sim_trace(sim) ^ told;
}

static void run(uint64_t seed, void (*program)(uint64_t seed))
{
	seed_of_program = random_state = seed;
	program(seed);
}

void for_each_seed(unsigned count, void (*program)(uint64_t seed))
{
	const char *one = getenv("SIM_SEED");
	if (one) {
		run(strtoull(one, NULL, 0), program);
		return;
	}
	uint64_t new_seed = tw_clock_now(tw_clock_monotonic());
	for (unsigned i = 0; i < rounds(count); i++) {
		run(1 + i, program);
		run(new_seed + i, program);
	}
}

static uint64_t (*program_of_twice)(uint64_t seed);

static void run_twice(uint64_t seed)
{
	uint64_t first = program_of_twice(seed);
	random_state = seed;
	sim_assert(program_of_twice(seed) == first, "the same seed took another way");
}

void for_each_seed_twice(unsigned count, uint64_t (*program)(uint64_t seed))
{
	program_of_twice = program;
	for_each_seed(count, run_twice);
}

void sim_go_on(tw_sim *sim)
{
	static const uint64_t spans_ns[] = {0, TW_MILLISECOND, 5 * TW_MILLISECOND,
					    100 * TW_MILLISECOND};
	if (!drawn_below(2)) {
		uint64_t span_ns = drawn_below(spans_ns[drawn_below(4)] + 1);
		sim_assert(tw_sim_run(sim, span_ns) >= 0, "run");
		return;
	}
	for (uint64_t i = drawn_below(10); i > 0; i--)
		sim_assert(tw_sim_step(sim) >= 0, "step");
}
