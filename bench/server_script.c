/*
 * Some connections are busier than others: the fourth power of a uniform draw picks one, so that
 * the quiet ones are idle for longer than the keep-alive time now and then. Answers take 20 ms on
 * average, exponentially.
 */
#include <math.h>
#include <stdlib.h>

#include "bench/random.h"
#include "bench/server_script.h"

enum { MEAN_ANSWER_MS = 20, LONGEST_ANSWER_MS = 150 };

/* 0 < .. < 1 */
static double random_part(struct random *random)
{
	return ((double)(random_next(random) >> 11) + 0.5) / 9007199254740992.0;
}

/*
 * Knuth's way, by products of uniform draws; exp(-mean) is far from underflow for the means used
 * here.
 */
static uint32_t random_poisson(struct random *random, double mean)
{
	double floor = exp(-mean), product = random_part(random);
	uint32_t count = 0;
	for (; product > floor; product *= random_part(random))
		count++;
	return count;
}

static uint32_t random_connection(struct random *random, uint32_t connections)
{
	double part = random_part(random);
	return (uint32_t)(part * part * part * part * connections);
}

static uint32_t random_answer_ms(struct random *random)
{
	double ms = 1 - MEAN_ANSWER_MS * log(random_part(random));
	return ms < LONGEST_ANSWER_MS ? (uint32_t)ms : LONGEST_ANSWER_MS;
}

struct writer {
	struct server_script *script;
	struct random random;
	uint32_t *free_slots; /* a stack */
	uint32_t free_count, connections;
};

static void end_in(struct server_script *script, uint32_t step, uint32_t request)
{
	if (step >= script->steps)
		return;
	script->requests[request].next = script->ends[step];
	script->ends[step] = request;
}

static void arrive(struct writer *writer, uint32_t step, uint32_t request)
{
	struct server_script *script = writer->script;
	struct random *random = &writer->random;
	uint32_t slot =
	    writer->free_count ? writer->free_slots[--writer->free_count] : script->request_slots++;
	bool silent = random_slot(random_next(random), SILENT_SHARE) == 0;
	script->requests[request] =
	    (struct request){.connection = random_connection(random, writer->connections),
			     .slot = slot,
			     .silent = silent,
			     .next = NO_REQUEST};
	end_in(script, step + (silent ? GIVEN_UP_MS : random_answer_ms(random)), request);
}

static void write_step(struct writer *writer, uint32_t step, uint32_t most)
{
	struct server_script *script = writer->script;
	for (uint32_t r = script->ends[step]; r != NO_REQUEST; r = script->requests[r].next)
		writer->free_slots[writer->free_count++] = script->requests[r].slot;
	uint32_t first = script->arrivals[step];
	uint32_t count = random_poisson(&writer->random, REQUESTS_PER_STEP);
	if (count > most - first)
		count = most - first;
	for (uint32_t i = 0; i < count; i++)
		arrive(writer, step, first + i);
	script->arrivals[step + 1] = first + count;
}

bool server_script_make(struct server_script *script, uint32_t steps, uint32_t connections)
{
	uint32_t most = steps * REQUESTS_PER_STEP * 2;
	struct writer writer = {
	    .script = script, .random = {.state = 1}, .connections = connections};
	*script = (struct server_script){.steps = steps,
					 .requests = calloc(most, sizeof *script->requests),
					 .arrivals = calloc(steps + 1, sizeof *script->arrivals),
					 .ends = malloc(steps * sizeof *script->ends)};
	writer.free_slots = malloc(most * sizeof *writer.free_slots);
	if (!script->requests || !script->arrivals || !script->ends || !writer.free_slots)
		return false;
	for (uint32_t step = 0; step < steps; step++)
		script->ends[step] = NO_REQUEST;
	for (uint32_t step = 0; step < steps; step++)
		write_step(&writer, step, most);
	free(writer.free_slots);
	return true;
}
