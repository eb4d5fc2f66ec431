/* What every layer promises, whatever it does besides: a row for each layer. */
#include <errno.h>
#include <malloc.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/eager_executor.h"
#include "test/support/queue_executor.h"
#include "test/support/random.h"
#include "test/support/rig.h"

TestSuite(base_layers, .timeout = 60);

enum layer { STRAND, SEMAPHORE, LIMITER, SCHEDULER, ACTIONS, LAYERS };
#define EACH_LAYER(layer) for (enum layer layer = 0; layer < LAYERS; layer++)

union object {
	tw_strand *strand;
	tw_semaphore *semaphore;
	tw_limiter *limiter;
	tw_scheduler *scheduler;
	tw_action_scheduler *actions;
};

/* What a layer runs, whatever the form of its functions: their arg is this. */
struct call {
	tw_fn *fn;
	union {
		uint64_t id;
		tw_strand_task_id task;
		tw_waiter waiter;
		tw_job job;
		tw_scheduler_task_id turn;
		tw_immediate immediate;
	} handle;
	void *seen;
};

static void run_call(void *arg)
{
	((struct call *)arg)->fn(arg);
}

static int run_job(void *arg, struct tw_job_run *run)
{
	run_call(arg);
	return 0;
}

static int run_turn(struct tw_turn *turn, void *arg)
{
	run_call(arg);
	return TW_TURN_DONE;
}

/* ---------------------------------------------------------------------- the rows */

static int create(enum layer layer, union object *out, tw_service *service, tw_executor *executor)
{
	const struct tw_limiter_config limiter = {.size = sizeof limiter,
						  .max_concurrency = 3,
						  .flags = TW_LIMITER_NONBLOCKING,
						  .executor = executor};
	const struct tw_scheduler_config scheduler = {.size = sizeof scheduler,
						      .executor = executor};
	const struct tw_action_scheduler_config asap = {.size = sizeof asap,
							.kind = TW_ACTION_KIND_ASAP,
							.service = service,
							.executor = executor};
	switch (layer) {
	case STRAND:
		return tw_strand_create(&out->strand, service, executor);
	case SEMAPHORE:
		return tw_semaphore_create(&out->semaphore, service, executor, INT32_MAX);
	case LIMITER:
		return tw_limiter_create(&out->limiter, service, &limiter);
	case SCHEDULER:
		return tw_scheduler_create(&out->scheduler, service, &scheduler);
	default:
		return tw_action_scheduler_create(&out->actions, &asap);
	}
}

static int destroy(enum layer layer, union object of)
{
	return layer == STRAND      ? tw_strand_destroy(of.strand)
	       : layer == SEMAPHORE ? tw_semaphore_destroy(of.semaphore)
	       : layer == LIMITER   ? tw_limiter_destroy(of.limiter)
	       : layer == SCHEDULER ? tw_scheduler_destroy(of.scheduler)
				    : tw_action_scheduler_destroy(of.actions);
}

static int submit_to(enum layer layer, union object of, struct call *call)
{
	const struct tw_strand_task task = {.size = sizeof task, .fn = run_call, .arg = call};
	switch (layer) {
	case STRAND:
		return tw_strand_submit_task(of.strand, &task, &call->handle.task);
	case SEMAPHORE:
		return tw_semaphore_acquire_async(of.semaphore, 1, run_call, call,
						  &call->handle.waiter);
	case LIMITER:
		return tw_limiter_submit(of.limiter, run_job, call, &call->handle.job);
	case SCHEDULER:
		return tw_scheduler_submit(of.scheduler, TW_PRIORITY_NORMAL, run_turn, call,
					   &call->handle.turn);
	default:
		return tw_immediate_submit(of.actions, run_call, call, &call->handle.immediate);
	}
}

static int cancel(enum layer layer, union object of, uint64_t id)
{
	return layer == STRAND      ? tw_strand_cancel(of.strand, (tw_strand_task_id){id})
	       : layer == SEMAPHORE ? tw_semaphore_cancel(of.semaphore, (tw_waiter){id})
	       : layer == LIMITER   ? tw_job_cancel(of.limiter, (tw_job){.id = id})
	       : layer == SCHEDULER ? tw_scheduler_cancel(of.scheduler, (tw_scheduler_task_id){id})
				    : tw_immediate_cancel(of.actions, (tw_immediate){id});
}

/* ------------------------------------------------------------- one on a queue */

static struct rig rig;
static struct queue_executor queue;
static union object object;

static void open_layer(enum layer layer)
{
	cr_log_info("layer %d", (int)layer);
	queue_executor_open(&queue);
	rig_open(&rig, NULL);
	expect_eq(create(layer, &object, rig.service, &queue.base), 0);
}

static void close_layer(enum layer layer)
{
	expect_eq(destroy(layer, object), 0);
	rig_close(&rig);
	queue_executor_close(&queue);
}

static void submit(enum layer layer, struct call *call, tw_fn *fn)
{
	*call = (struct call){.fn = fn};
	expect_eq(submit_to(layer, object, call), 0);
	expect_ne(call->handle.id, 0);
}

static void nothing(void *arg)
{
}

/* ------------------------------------------------------------------- the promises */

Test(base_layers, service_and_pool_stay_open_while_it_lives_and_closed_ones_are_refused)
{
	const struct tw_pool_config one = {.size = sizeof one, .workers = 1};
	EACH_LAYER(layer)
	{
		union object other = {0};
		tw_pool *pool;
		open_layer(layer);
		expect_eq(tw_pool_create(&pool, &one), 0);
		expect_eq(create(layer, &other, rig.service, tw_pool_executor(pool)), 0);
		expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), -EBUSY);
		expect_eq(tw_pool_destroy(pool), -EBUSY);
		expect_eq(destroy(layer, other), 0);
		expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
		expect_eq(create(layer, &other, rig.service, tw_pool_executor(pool)), -ESHUTDOWN);
		expect_eq(tw_pool_destroy(pool), 0);
		expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), -EBUSY);
		expect_eq(tw_service_destroy(rig.service), -EBUSY);
		expect_eq(destroy(layer, object), 0);
		expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
		expect_eq(create(layer, &object, rig.service, NULL), -ESHUTDOWN);
		rig_close(&rig);
		queue_executor_close(&queue);
	}
}

Test(base_layers, stale_and_random_handles_are_gone)
{
	EACH_LAYER(layer)
	{
		struct call ended, live;
		uint64_t seed = 7;
		open_layer(layer);
		submit(layer, &ended, nothing);
		queue_executor_run_all(&queue);
		submit(layer, &live, nothing); /* in the same node */
		expect_eq(cancel(layer, object, ended.handle.id), TW_GONE);
		for (int i = 0; i < 1000; i++)
			expect_eq(cancel(layer, object, i ? random_next(&seed) : 0), TW_GONE);
		expect_eq(cancel(layer, object, UINT64_MAX), TW_GONE);
		expect_eq(cancel(layer, object, live.handle.id), TW_CANCELLED);
		expect_eq(cancel(layer, object, live.handle.id), TW_GONE);
		expect_eq(cancel(layer, (union object){0}, live.handle.id), -EINVAL);
		queue_executor_run_all(&queue);
		close_layer(layer);
	}
}

enum { LOOPS = 20000 };

/* The first one waits meanwhile: nothing is empty, and nothing runs. */
Test(base_layers, what_is_submitted_and_cancelled_leaves_no_memory_behind)
{
	EACH_LAYER(layer)
	{
		struct call waits, gone;
		size_t before = 0;
		open_layer(layer);
		submit(layer, &waits, nothing);
		for (int i = 0; i < LOOPS; i++) {
			submit(layer, &gone, nothing);
			expect_eq(cancel(layer, object, gone.handle.id), TW_CANCELLED);
			if (i == LOOPS / 10)
				before = mallinfo2().uordblks;
		}
		expect_lt(mallinfo2().uordblks, before + 64 * 1024);
		queue_executor_run_all(&queue);
		close_layer(layer);
	}
}

static void see_context(void *arg)
{
	((struct call *)arg)->seen = tw_context_get();
	tw_context_set(&rig);
}

Test(base_layers, what_it_runs_has_the_context_of_the_submit)
{
	int first, second, drivers;
	EACH_LAYER(layer)
	{
		struct call calls[3];
		void *contexts[] = {&first, NULL, &second};
		open_layer(layer);
		for (int i = 0; i < 3; i++) {
			tw_context_set(contexts[i]);
			submit(layer, &calls[i], see_context);
		}
		tw_context_set(&drivers);
		queue_executor_run_all(&queue);
		for (int i = 0; i < 3; i++)
			cr_assert_eq(calls[i].seen, contexts[i]);
		cr_assert_eq(tw_context_get(), &drivers);
		tw_context_set(NULL);
		close_layer(layer);
	}
}

static enum layer forking;
static pid_t forked;

static void fork_inside(void *arg)
{
	struct call *call = arg, more = {.fn = nothing};
	forked = child_fork();
	if (forked)
		return;
	child_eq(submit_to(forking, object, &more), -EPERM);
	child_eq(cancel(forking, object, call->handle.id), -EPERM);
	_exit(0);
}

Test(base_layers, what_it_runs_may_fork_and_the_child_is_refused)
{
	EACH_LAYER(layer)
	{
		struct call call;
		forking = layer;
		open_layer(layer);
		submit(layer, &call, fork_inside);
		queue_executor_run_all(&queue);
		expect_child_well(forked);
		close_layer(layer);
	}
}

/* --------------------------------------- on an executor that runs what it is given at once */

enum { OBJECTS = 3, LINKS = 30000 };

static struct {
	enum layer layer;
	union object objects[OBJECTS];
	struct call call;
	bool submitting;
	int inside, links;
	uintptr_t lowest, highest; /* addresses of the runs' stack frames */
} chain;

static void submit_link(void)
{
	bool outer = chain.submitting;
	chain.submitting = true;
	expect_eq(submit_to(chain.layer, chain.objects[chain.links % OBJECTS], &chain.call), 0);
	chain.submitting = outer;
}

static void run_link(void *arg)
{
	uintptr_t here = (uintptr_t)&arg;
	chain.inside += chain.submitting;
	chain.lowest = here < chain.lowest ? here : chain.lowest;
	chain.highest = here > chain.highest ? here : chain.highest;
	if (++chain.links < LINKS)
		submit_link();
}

Test(base_layers, nothing_runs_inside_submit_and_a_chain_over_three_keeps_the_stack)
{
	EACH_LAYER(layer)
	{
		chain.layer = layer;
		chain.call.fn = run_link;
		chain.links = chain.inside = 0;
		chain.lowest = UINTPTR_MAX, chain.highest = 0;
		rig_open(&rig, NULL);
		for (int i = 0; i < OBJECTS; i++)
			expect_eq(create(layer, &chain.objects[i], rig.service, &eager_executor),
				  0);
		submit_link();
		expect_eq(chain.links, 0);
		for (int turns = 0; chain.links < LINKS && turns < 2 * LINKS; turns++)
			tw_service_advance(rig.service, TW_NO_LIMIT);
		expect_eq(chain.links, LINKS);
		expect_eq(chain.inside, 0);
		expect_le(chain.highest - chain.lowest, 64 * 1024);
		for (int i = 0; i < OBJECTS; i++)
			expect_eq(destroy(layer, chain.objects[i]), 0);
		rig_advance(&rig, MS);
		rig_close(&rig);
	}
}
