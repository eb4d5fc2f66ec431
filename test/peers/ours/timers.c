/*
 * Timers and series, beside Java's. Kind "stpe": times in ticks of 100 us. Kind "netty": in ticks
 * of 1 ms, and half a tick is added to each delay, since Netty's wheel rounds an exact multiple up
 * to the next tick.
 */
#include <errno.h>
#include <stdio.h>

#include "test/peers/ours/script.h"

struct timers {
	struct script *script;
	struct fixture fixture;
	uint64_t tick_ns;
	bool closed;
	struct timer {
		tw_timer handle;
		bool used, series, running;
	} timers[IDS];
};

static struct timers player;

static void act(void *arg, const struct step *step, bool inside);

static int64_t now_ticks(void)
{
	return (int64_t)((tw_clock_now(player.fixture.clock) - player.fixture.start_ns) /
			 player.tick_ns);
}

static void fire(void *arg)
{
	struct timer *timer = arg;
	int id = (int)(timer - player.timers);
	say("%s %d at %d", timer->series ? "series" : "run", id, (int)now_ticks());
	timer->running = true;
	script_run(player.script, id, act, &player);
	timer->running = false;
}

static uint64_t delay_ns(const struct step *step)
{
	bool half = kind_is(player.script, "netty") && !step_is(step, "at!");
	return (uint64_t)step->args[1] * player.tick_ns + (half ? player.tick_ns / 2 : 0);
}

static void report(const struct step *step, int r)
{
	if (r == -ESHUTDOWN)
		say("refused %d", (int)step->args[0]);
	else
		must(r, step->op);
}

static void schedule(const struct step *step)
{
	struct timer *timer = &player.timers[step->args[0]];
	if (timer->used)
		return;
	timer->used = true;
	report(step,
	       tw_schedule(player.fixture.service, delay_ns(step), fire, timer, &timer->handle));
}

/* Java's executor makes up for each missed instant. */
static void schedule_series(const struct step *step, enum tw_period_mode mode)
{
	struct timer *timer = &player.timers[step->args[0]];
	const struct tw_period period = {.size = sizeof period,
					 .first_ns = delay_ns(step),
					 .period_ns = (uint64_t)step->args[2] * player.tick_ns,
					 .mode = mode,
					 .missed = mode == TW_FIXED_RATE ? TW_MISSED_BURST
									 : TW_MISSED_SKIP};
	if (timer->used)
		return;
	timer->used = timer->series = true;
	report(step,
	       tw_schedule_every(player.fixture.service, &period, fire, timer, &timer->handle));
}

/*
 * A timer that cancels itself in its run: Java's executor answers yes, Netty no. So that is left
 * out for one-shot timers.
 */
static void cancel(const struct step *step, bool forced)
{
	const struct timer *timer = &player.timers[step->args[0]];
	if (!timer->used || (timer->running && !timer->series && !forced))
		return;
	int r = tw_cancel(player.fixture.service, timer->handle);
	say("cancel %d %d", (int)step->args[0],
	    r == TW_CANCELLED || (r == TW_RUNNING && timer->series));
}

/* The clock jumps, as after a stall; then all that is due runs. */
static void stall(int64_t ticks)
{
	uint64_t to_ns = tw_clock_now(player.fixture.clock) + (uint64_t)ticks * player.tick_ns;
	MUST(tw_clock_manual_set(player.fixture.clock, to_ns));
	while (!player.closed && tw_service_advance(player.fixture.service, TW_NO_LIMIT) > 0) {
	}
}

static int note_left(void *visitor_arg, tw_timer timer, tw_fn *fn, void *arg, uint64_t remaining_ns)
{
	bool *left = visitor_arg;
	left[(struct timer *)arg - player.timers] = true;
	return 0;
}

/* Ends all, and lists what has not run. */
static void stop(void)
{
	bool left[IDS] = {false};
	if (player.closed)
		return;
	player.closed = true;
	tw_service_foreach(player.fixture.service, note_left, left);
	MUST(tw_service_close(player.fixture.service, TW_CLOSE_DROP, 0));
	for (int id = 0; id < IDS; id++)
		if (left[id])
			say("left %d", id);
}

static void act(void *arg, const struct step *step, bool inside)
{
	if (step_is(step, "at") || step_is(step, "at!"))
		schedule(step);
	else if (step_is(step, "rate"))
		schedule_series(step, TW_FIXED_RATE);
	else if (step_is(step, "delay"))
		schedule_series(step, TW_FIXED_DELAY);
	else if (step_is(step, "cancel") || step_is(step, "cancel!"))
		cancel(step, step_is(step, "cancel!"));
	else if (inside)
		return;
	else if (step_is(step, "advance"))
		MUST(tw_clock_manual_advance_by(player.fixture.clock,
						(uint64_t)step->args[0] * player.tick_ns));
	else if (step_is(step, "stall"))
		stall(step->args[0]);
	else if (step_is(step, "stop"))
		stop();
}

void play_timers(struct script *script)
{
	player =
	    (struct timers){.script = script, .tick_ns = kind_is(script, "netty") ? MS : MS / 10};
	service_open(&player.fixture, player.tick_ns);
	script_play(script, act, &player);
	service_close(&player.fixture);
}
