/*
 * A server's timeouts, tested without a server and without sleeping, over many seeds. Each seed
 * plays the same hour of requests against four simulated workers, which overtake each other in
 * another way. `simulation 17` plays that one seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tickwheel/layers.h>

enum { CONNECTIONS = 50, REQUESTS = 2000, SEEDS = 200 };

#define REQUEST_TIMEOUT (5 * TW_SECOND)
#define IDLE_TIMEOUT (30 * TW_SECOND)

/*
 * Under test: a connection is answered, or times out, or is closed because it is idle; never two of
 * these together.
 */
struct connection {
	tw_service *service;
	tw_timer request_timeout, idle_timeout;
	bool open, waiting;
	unsigned answered, timed_out, closed_idle;
};

static void on_idle(void *arg)
{
	struct connection *c = arg;
	c->open = false;
	c->closed_idle++;
}

static void on_request_timeout(void *arg)
{
	struct connection *c = arg;
	c->waiting = false;
	c->timed_out++;
	tw_schedule(c->service, IDLE_TIMEOUT, on_idle, c, &c->idle_timeout);
}

/* The network brings a request. */
static void on_request(void *arg)
{
	struct connection *c = arg;
	if (c->waiting)
		return;
	if (c->open && tw_cancel(c->service, c->idle_timeout) != TW_CANCELLED)
		return; /* it is being closed */
	c->open = c->waiting = true;
	tw_schedule(c->service, REQUEST_TIMEOUT, on_request_timeout, c, &c->request_timeout);
}

static void on_answer(void *arg)
{
	struct connection *c = arg;
	if (!c->waiting || tw_cancel(c->service, c->request_timeout) != TW_CANCELLED)
		return; /* too late: it times out */
	c->waiting = false;
	c->answered++;
	tw_schedule(c->service, IDLE_TIMEOUT, on_idle, c, &c->idle_timeout);
}

/* ------------------------------------------------------------------------ test */

/* Requests and answers at drawn instants, also when a timeout is about to run. */
static void plan(unsigned random, struct connection *connections)
{
	for (int i = 0; i < REQUESTS; i++) {
		struct connection *c = &connections[rand_r(&random) % CONNECTIONS];
		uint64_t at_ns = rand_r(&random) % 3600 * TW_SECOND;
		uint64_t takes_ns = (3 + rand_r(&random) % 3) * TW_SECOND; /* at most the timeout */
		tw_schedule_at(c->service, at_ns, on_request, c, NULL);
		tw_schedule_at(c->service, at_ns + takes_ns, on_answer, c, NULL);
	}
}

static bool holds(const struct connection *c)
{
	return !c->open && !c->waiting && (c->closed_idle > 0 || c->answered + c->timed_out == 0);
}

static bool play(uint64_t seed, unsigned *answered, unsigned *timed_out)
{
	struct connection connections[CONNECTIONS] = {0};
	struct tw_sim_config config = {.size = sizeof config, .seed = seed, .workers = 4};
	tw_sim *sim;
	bool good = tw_sim_create(&sim, &config) == 0;
	if (!good)
		return false;
	for (int i = 0; i < CONNECTIONS; i++)
		connections[i].service = tw_sim_service(sim);
	plan((unsigned)seed, connections);
	good = tw_sim_run(sim, 2 * 3600 * TW_SECOND) == 0;
	for (int i = 0; i < CONNECTIONS; i++) {
		good = good && holds(&connections[i]);
		*answered += connections[i].answered;
		*timed_out += connections[i].timed_out;
	}
	tw_sim_destroy(sim);
	return good;
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	unsigned answered = 0, timed_out = 0, runs = argc > 1 ? 1 : SEEDS;
	for (uint64_t seed = first; seed < first + runs; seed++)
		if (!play(seed, &answered, &timed_out)) {
			printf("broken; to see it again: simulation %llu\n",
			       (unsigned long long)seed);
			return 1;
		}
	printf("%u simulated hours: %u requests answered, %u timed out, every connection closed\n",
	       runs, answered, timed_out);
	return 0;
}
