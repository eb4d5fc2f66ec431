/* scheduler.h, action.h, sim.h. */
#include <errno.h>
#include <sched.h>

#include "calls.h"

static tw_service *service;
static tw_scheduler *scheduler, *by_hand;
static tw_scheduler_task_id task;
static tw_action_scheduler *asyncs, *asaps; /* ASAP: by the caller */
static tw_action *action;
static tw_immediate immediate;
static tw_sim *sim;
static struct hold held;

/* ---------------------------------------------------------------- schedulers */

static int done(struct tw_turn *turn, void *arg)
{
	(void)turn, (void)arg;
	return TW_TURN_DONE;
}

#define TASK(...) STRUCT(tw_scheduler_task, .fn = done, __VA_ARGS__)
#define BY_HAND(...) STRUCT(tw_scheduler_config, .host = TW_HOST_MANUAL, __VA_ARGS__)

static void scheduler_calls(void)
{
	tw_scheduler *other;
	tw_scheduler_task_id out;
	CALL(tw_scheduler_create(&other, service, NULL));
	CALL(tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, done, NULL, &out));
	CALL(tw_scheduler_submit_task(scheduler, TASK(.delay_ns = TW_SECOND), &out));
	CALL(tw_scheduler_cancel(scheduler, task));
	CALL(tw_scheduler_stats(scheduler, PLAIN(tw_scheduler_stats)));
	CALL(tw_scheduler_run(by_hand, 1));
}

static void scheduler_in_child(void)
{
	scheduler_calls();
	CALL(tw_scheduler_close(scheduler, 0));
	CALL(tw_scheduler_destroy(scheduler));
}

static void scheduler_grows(void)
{
	tw_scheduler *other;
	CALL(tw_scheduler_create(&other, service, NULL));
	MUST(tw_scheduler_create(&other, service, BY_HAND(.max_tasks = 9)));
	CALL(tw_scheduler_submit(other, TW_PRIORITY_NORMAL, done, NULL, NULL));
	MUST(tw_scheduler_create(&other, service, BY_HAND(.max_tasks = 9)));
	CALL(tw_scheduler_submit_task(other, TASK(.delay_ns = TW_SECOND), NULL));
}

static void bad_schedulers(void)
{
	tw_scheduler *other;
	tw_scheduler_task_id out;
	situation("with bad arguments");
	CALL(tw_scheduler_create(&other, service, BIG(tw_scheduler_config, .max_tasks = 1)));
	CALL(tw_scheduler_submit(scheduler, (enum tw_priority)77, done, NULL, &out));
	CALL(tw_scheduler_submit_task(scheduler, BIG(tw_scheduler_task, .fn = done), &out));
	MUST(tw_scheduler_submit_task(by_hand, TASK(.delay_ns = TW_MAX_DELAY_NS), &out));
	CALL(tw_scheduler_cancel(scheduler, (tw_scheduler_task_id){0}));
	CALL(tw_scheduler_destroy(NULL));
}

static int from_a_turn(struct tw_turn *turn, void *arg)
{
	(void)turn, (void)arg;
	situation("inside its task");
	CALL(tw_scheduler_close(by_hand, MS));
	CALL(tw_scheduler_destroy(by_hand));
	CALL(tw_scheduler_run(by_hand, 1));
	return TW_TURN_DONE;
}

static int held_turn(struct tw_turn *turn, void *arg)
{
	(void)turn;
	hold(arg);
	return TW_TURN_DONE;
}

void schedulers(void)
{
	tw_scheduler *other;
	MUST(tw_service_create(&service, NULL));
	MUST(tw_scheduler_create(&scheduler, service, STRUCT(tw_scheduler_config, .max_tasks = 1)));
	MUST(tw_scheduler_create(&by_hand, service, BY_HAND(.max_tasks = 9)));
	bad_schedulers();
	MUST(tw_scheduler_submit(by_hand, TW_PRIORITY_NORMAL, from_a_turn, NULL, NULL));
	MUST(tw_scheduler_run(by_hand, 1));
	held = (struct hold){0};
	while (tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, held_turn, &held, &task) ==
	       -EAGAIN)
		sched_yield(); /* the task of another priority is about to end */
	await_begun(&held);
	in_child(scheduler_in_child);
	situation("full, and a task runs");
	scheduler_calls();
	CALL(tw_scheduler_close(scheduler, 0));
	let_go(&held);
	MUST(tw_scheduler_close(scheduler, TW_FOREVER));
	MUST(tw_scheduler_close(by_hand, TW_FOREVER));
	situation("closed");
	scheduler_calls();
	CALL(tw_scheduler_destroy(scheduler));
	CALL(tw_scheduler_destroy(by_hand));
	without_memory(scheduler_grows);
	MUST(tw_service_create(&service, NULL));
	MUST(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER));
	situation("of a closed service");
	CALL(tw_scheduler_create(&other, service, NULL));
	MUST(tw_service_destroy(service));
}

/* ------------------------------------------------------------------- actions */

static int succeed(tw_action *self, void *state)
{
	(void)self, (void)state;
	return 0;
}

#define OF(kind_, ...) \
	STRUCT(tw_action_scheduler_config, .kind = TW_ACTION_KIND_##kind_, __VA_ARGS__)

static void action_calls(void)
{
	tw_action *other;
	CALL(tw_action_create(&other, asyncs, succeed, NULL));
	CALL(tw_action_schedule(action, NULL, 100 * TW_SECOND));
	CALL(tw_action_state(action));
	CALL(tw_action_run(action, NULL));
	CALL(tw_immediate_submit(asaps, nothing, NULL, &immediate));
	CALL(tw_immediate_cancel(asaps, immediate));
	CALL(tw_immediate_cancel(asaps, immediate));
	CALL(tw_action_scheduler_flush(asaps));
	CALL(tw_action_scheduler_stats(asyncs, PLAIN(tw_action_scheduler_stats)));
}

static void closes(void)
{
	CALL(tw_action_close(action, 0));
	CALL(tw_action_schedule(action, NULL, 0));
	CALL(tw_action_run(action, NULL));
	CALL(tw_action_destroy(action));
}

static void action_in_child(void)
{
	tw_action_scheduler *other;
	action_calls();
	closes();
	CALL(tw_action_scheduler_create(&other, OF(ASYNC, .service = service)));
	CALL(tw_action_scheduler_destroy(asyncs));
}

static void action_grows(void)
{
	tw_action_scheduler *other;
	tw_action *made;
	CALL(tw_action_scheduler_create(&other, OF(ASYNC, .service = service)));
	MUST(tw_action_scheduler_create(&other, OF(ASYNC, .service = service)));
	CALL(tw_action_create(&made, other, succeed, NULL));
	MUST(tw_action_create(&made, other, succeed, NULL));
	CALL(tw_action_schedule(made, NULL, TW_SECOND));
	MUST(tw_action_scheduler_create(&other, OF(ASAP, .service = service)));
	CALL(tw_immediate_submit(other, nothing, NULL, &immediate));
	MUST(tw_action_scheduler_create(&other, OF(FRAME, .service = service)));
	CALL(tw_immediate_submit(other, nothing, NULL, &immediate));
}

static void bad_actions(void)
{
	tw_action_scheduler *other;
	tw_action *made;
	situation("with bad arguments");
	CALL(tw_action_scheduler_create(&other,
					BIG(tw_action_scheduler_config, .service = service)));
	CALL(tw_action_scheduler_destroy(NULL));
	MUST(tw_action_create(&made, asaps, succeed, NULL));
	CALL(tw_action_destroy(made));
	CALL(tw_action_destroy(NULL));
}

static int from_its_work(tw_action *self, void *state)
{
	(void)state;
	situation("inside its work");
	CALL(tw_action_run(self, NULL));
	CALL(tw_action_scheduler_flush(asaps));
	CALL(tw_action_scheduler_destroy(asaps));
	CALL(tw_action_close(self, MS));
	return 7;
}

static void in_a_full_service(void)
{
	tw_action_scheduler *other;
	tw_action *made;
	MUST(tw_service_create(&service, STRUCT(tw_service_config, .max_timers = 1)));
	MUST(tw_action_scheduler_create(&other, OF(ASYNC, .service = service)));
	MUST(tw_action_create(&made, other, succeed, NULL));
	tw_action_scheduler *frames;
	MUST(tw_action_scheduler_create(&frames, OF(FRAME, .service = service)));
	for (int i = 0; i < 2000; i++)
		tw_schedule(service, 100 * TW_SECOND, nothing, NULL, NULL);
	situation("full");
	CALL(tw_action_schedule(made, NULL, TW_SECOND));
	CALL(tw_action_destroy(made));
	CALL(tw_immediate_submit(frames, nothing, NULL, &immediate));
}

void actions(void)
{
	tw_action_scheduler *other;
	tw_action *made;
	MUST(tw_service_create(&service, NULL));
	MUST(tw_action_scheduler_create(&asyncs, OF(ASYNC, .service = service)));
	MUST(tw_action_scheduler_create(&asaps, OF(ASAP, .flags = TW_ACTION_FLAG_BY_CALLER)));
	MUST(tw_action_create(&action, asyncs, succeed, NULL));
	bad_actions();
	in_child(action_in_child);
	situation("open");
	action_calls();
	CALL(tw_action_scheduler_destroy(asyncs));
	MUST(tw_action_create(&made, asaps, from_its_work, NULL));
	MUST(tw_action_schedule(made, NULL, 0));
	CALL(tw_action_scheduler_flush(asaps));
	CALL(tw_action_destroy(made));
	situation("closed");
	closes();
	without_memory(action_grows);
	in_a_full_service();
	MUST(tw_service_create(&service, NULL));
	MUST(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER));
	situation("of a closed service");
	CALL(tw_action_scheduler_create(&other, OF(ASYNC, .service = service)));
	MUST(tw_service_destroy(service));
}

/* --------------------------------------------------------------- simulations */

static void sim_calls(void)
{
	CALL(tw_sim_step(sim));
	CALL(tw_sim_run(sim, MS));
}

static void sim_ends(void)
{
	CALL(tw_sim_close(sim, TW_CLOSE_DROP));
	CALL(tw_sim_destroy(sim));
}

static void sim_in_child(void)
{
	sim_calls();
	sim_ends();
}

/* A simulation with a timer that is due, all made on another thread. */
static tw_sim *made;

static void make_sim(void)
{
	MUST(tw_sim_create(&made, NULL));
	MUST(tw_schedule(tw_sim_service(made), 0, nothing, NULL, NULL));
	MUST(tw_sim_step(made)); /* the tick */
	MUST(tw_sim_step(made)); /* a worker takes the run */
}

static void sim_grows(void)
{
	tw_sim *other;
	CALL(tw_sim_create(&other, NULL));
	MUST(tw_sim_create(&other, NULL));
	in_thread(make_sim);
	CALL(tw_sim_step(made));
	in_thread(make_sim);
	CALL(tw_sim_run(made, MS));
	in_thread(make_sim);
	CALL(tw_sim_close(made, TW_CLOSE_RUN));
}

static void again(void *arg)
{
	tw_strand_submit(arg, again, arg);
}

static void inside_the_sim(void *arg)
{
	(void)arg;
	situation("inside");
	sim_calls();
	sim_ends();
}

void simulations(void)
{
	tw_sim *other;
	tw_strand *strand;
	MUST(tw_sim_create(&sim, STRUCT(tw_sim_config, .max_steps = 20)));
	situation("with bad arguments");
	CALL(tw_sim_create(&other, BIG(tw_sim_config, .workers = 1)));
	CALL(tw_sim_run(sim, UINT64_MAX - 1));
	CALL(tw_sim_destroy(NULL));
	in_child(sim_in_child);
	without_memory(sim_grows);
	MUST(tw_schedule(tw_sim_service(sim), 0, inside_the_sim, NULL, NULL));
	MUST(tw_sim_run(sim, MS));
	situation("open");
	MUST(tw_schedule(tw_sim_service(sim), TW_SECOND, nothing, NULL, NULL));
	sim_calls();
	MUST(tw_strand_create(&strand, tw_sim_service(sim), NULL));
	situation("while a layer uses it");
	sim_ends();
	situation("with work without end");
	MUST(tw_strand_submit(strand, again, strand));
	CALL(tw_sim_run(sim, MS));
	CALL(tw_sim_close(sim, TW_CLOSE_RUN));
	MUST(tw_strand_destroy(strand));
	CALL(tw_sim_destroy(sim));
}
