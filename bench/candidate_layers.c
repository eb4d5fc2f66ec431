/*
 * Our layers above pools, of W12, each on a shared pool of one worker and a service with defaults.
 * A further one joins here: open, shut, post.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "bench/candidate.h"
#include "tickwheel/layers.h"

struct layer {
	tw_pool *pool;
	tw_service *service;
	void *top; /* the layer itself */
	int (*shut)(struct layer *self);
};

/* What the one task of W12 is; there is one candidate in a process. */
static struct layer *the_layer;
static expiry_fn *the_fn;

/* What has run may still be on its way home. */
static void destroy(void *me)
{
	struct layer *self = me;
	while (self->top && self->shut(self) == -EBUSY)
		sched_yield();
	while (tw_service_destroy(self->service) == -EBUSY)
		sched_yield();
	tw_pool_destroy(self->pool);
	free(self);
}

static void *create(const struct candidate_setup *setup, int (*open)(struct layer *),
		    int (*shut)(struct layer *))
{
	struct layer *self = the_layer = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	self->shut = shut;
	struct tw_pool_config pool = {.size = sizeof pool, .workers = setup->threads};
	struct tw_service_config service = {.size = sizeof service};
	bool made = tw_pool_create(&self->pool, &pool) == 0;
	service.executor = tw_pool_executor(self->pool);
	if (!made || tw_service_create(&self->service, &service) < 0 || open(self) < 0) {
		destroy(self);
		return NULL;
	}
	return self;
}

/* ---- strand */

static int open_strand(struct layer *self)
{
	tw_strand *strand = NULL;
	int r = tw_strand_create(&strand, self->service, NULL);
	self->top = strand;
	return r;
}

static int shut_strand(struct layer *self)
{
	return tw_strand_destroy(self->top);
}

static void *create_strand(const struct candidate_setup *setup)
{
	return create(setup, open_strand, shut_strand);
}

static int post_strand(void *me, expiry_fn *fn, void *arg)
{
	return tw_strand_submit(((struct layer *)me)->top, fn, arg);
}

const struct candidate candidate_strand = {
    .name = "tickwheel-strand",
    .what = "tw_strand_submit, on a pool",
    .workloads = ON_LAYERS,
    .create = create_strand,
    .destroy = destroy,
    .post = post_strand,
};

/* ---- scheduler */

static int open_scheduler(struct layer *self)
{
	tw_scheduler *scheduler = NULL;
	int r = tw_scheduler_create(&scheduler, self->service, NULL);
	self->top = scheduler;
	return r;
}

static int shut_scheduler(struct layer *self)
{
	return tw_scheduler_destroy(self->top);
}

static void *create_scheduler(const struct candidate_setup *setup)
{
	return create(setup, open_scheduler, shut_scheduler);
}

static int turn(struct tw_turn *turn_, void *arg)
{
	(void)turn_;
	the_fn(arg);
	return TW_TURN_DONE;
}

static int post_scheduler(void *me, expiry_fn *fn, void *arg)
{
	the_fn = fn;
	return tw_scheduler_submit(((struct layer *)me)->top, TW_PRIORITY_NORMAL, turn, arg, NULL);
}

const struct candidate candidate_scheduler = {
    .name = "tickwheel-scheduler",
    .what = "tw_scheduler_submit, on a pool",
    .workloads = ON_LAYERS,
    .create = create_scheduler,
    .destroy = destroy,
    .post = post_scheduler,
};

/* ---- limiter */

static int open_limiter(struct layer *self)
{
	tw_limiter *limiter = NULL;
	struct tw_limiter_config config = {.size = sizeof config, .max_concurrency = 1};
	int r = tw_limiter_create(&limiter, self->service, &config);
	self->top = limiter;
	return r;
}

static int shut_limiter(struct layer *self)
{
	return tw_limiter_destroy(self->top);
}

static void *create_limiter(const struct candidate_setup *setup)
{
	return create(setup, open_limiter, shut_limiter);
}

static int job(void *arg, struct tw_job_run *run)
{
	(void)run;
	the_fn(arg);
	return 0;
}

static int post_limiter(void *me, expiry_fn *fn, void *arg)
{
	the_fn = fn;
	return tw_limiter_submit(((struct layer *)me)->top, job, arg, NULL);
}

const struct candidate candidate_limiter = {
    .name = "tickwheel-limiter",
    .what = "tw_limiter_submit, one permit, on a pool",
    .workloads = ON_LAYERS,
    .create = create_limiter,
    .destroy = destroy,
    .post = post_limiter,
};

/* ---- semaphore */

static int open_semaphore(struct layer *self)
{
	tw_semaphore *semaphore = NULL;
	int r = tw_semaphore_create(&semaphore, self->service, NULL, 1);
	self->top = semaphore;
	return r;
}

static int shut_semaphore(struct layer *self)
{
	return tw_semaphore_destroy(self->top);
}

static void *create_semaphore(const struct candidate_setup *setup)
{
	return create(setup, open_semaphore, shut_semaphore);
}

static void with_permit(void *arg)
{
	/* First: the thread that counts the last run destroys the semaphore. */
	tw_semaphore_release(the_layer->top, 1);
	the_fn(arg);
}

static int post_semaphore(void *me, expiry_fn *fn, void *arg)
{
	the_fn = fn;
	return tw_semaphore_acquire_async(((struct layer *)me)->top, 1, with_permit, arg, NULL);
}

const struct candidate candidate_semaphore = {
    .name = "tickwheel-semaphore",
    .what = "acquire with a function, and release, one permit, on a pool",
    .workloads = ON_LAYERS,
    .create = create_semaphore,
    .destroy = destroy,
    .post = post_semaphore,
};
