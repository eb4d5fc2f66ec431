/*
 * A client that retries, tested on a virtual clock: an hour of its behavior in milliseconds,
 * without sleeping, and the same each time.
 *
 * The client knows nothing of the test. It gets a scheduler, which in the server runs on a timer
 * service.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tickwheel.h"

#define MINUTE (60 * TW_SECOND)
#define FIRST_PAUSE (500 * TW_MILLISECOND)
#define LONGEST_PAUSE (5 * MINUTE)

/* ------------------------------------------------------------ what is tested */

struct client {
	tw_action_scheduler *scheduler;
	bool (*ask)(struct client *client); /* whether the server answers */
	uint64_t pause_ns;
	unsigned tries;
	uint64_t connected_ns; /* 0: not yet */
};

static int attempt(tw_action *action, void *state)
{
	struct client *client = state;
	client->tries++;
	if (client->ask(client)) {
		client->connected_ns = tw_action_scheduler_now(client->scheduler);
		return 0; /* not scheduled again */
	}
	tw_action_schedule(action, client, client->pause_ns);
	client->pause_ns =
	    client->pause_ns < LONGEST_PAUSE / 2 ? 2 * client->pause_ns : LONGEST_PAUSE;
	return 0;
}

static tw_action *connect_to_server(struct client *client)
{
	client->pause_ns = FIRST_PAUSE;
	tw_action *action;
	tw_action_scheduler_schedule(client->scheduler, attempt, client, 0, &action);
	return action;
}

/* ------------------------------------------------------------------ the test */

#define SERVER_IS_BACK (47 * MINUTE)

static uint64_t last_try_ns;
static unsigned too_soon;

static bool server_that_is_down(struct client *client)
{
	uint64_t now_ns = tw_action_scheduler_now(client->scheduler);
	if (client->tries > 1 && now_ns - last_try_ns < FIRST_PAUSE)
		too_soon++;
	last_try_ns = now_ns;
	printf("%6.1f min: try %u\n", (double)now_ns / (double)MINUTE, client->tries);
	return now_ns >= SERVER_IS_BACK;
}

static bool check(const char *what, bool holds)
{
	printf("%s: %s\n", what, holds ? "yes" : "NO");
	return holds;
}

int main(void)
{
	struct tw_action_scheduler_config config = {.size = sizeof(config),
						    .kind = TW_ACTION_KIND_VIRTUAL};
	struct client client = {.ask = server_that_is_down};
	uint64_t begun_ns = tw_clock_now(tw_clock_monotonic());
	if (tw_action_scheduler_create(&client.scheduler, &config) != 0)
		return 1;
	tw_action *action = connect_to_server(&client);
	bool ok = action && tw_action_scheduler_advance(client.scheduler, 60 * MINUTE) == 0;

	ok &= check("connected when the server was back, within the longest pause",
		    client.connected_ns >= SERVER_IS_BACK &&
			client.connected_ns <= SERVER_IS_BACK + LONGEST_PAUSE);
	ok &= check("never tried sooner than the first pause", too_soon == 0);
	ok &= check("fewer than 30 tries in all", client.tries < 30);
	ok &= check("it rests now", tw_action_state(action) == TW_ACTION_STATE_IDLE);
	tw_action_destroy(action);
	ok &= tw_action_scheduler_destroy(client.scheduler) == 0;
	printf("an hour passed in %.1f ms\n",
	       (double)(tw_clock_now(tw_clock_monotonic()) - begun_ns) / 1e6);
	return ok ? 0 : 1;
}
