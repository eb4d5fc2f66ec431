/* A strand's creation, end, and looks at it. Calls the base; see internal.h. */
#include "executor/strand/run.h"
#include "executor/strand/submit.h"

#include <string.h>

/* ------------------------------------------------------------------ birth and end */

static void strand_free(struct tw__object *object)
{
	tw__free(tw__strand_of(object));
}

static bool strand_look(struct tw__object *object, struct tw__figures *out)
{
	tw_strand *strand = tw__strand_of(object);
	bool more = tw__strand_gather(strand);
	out->running = strand->running;
	out->waiting = strand->queued;
	out->delayed = object->delays;
	return more;
}

static const struct tw__object_kind strand_kind = {"strand", strand_free, strand_look};

int tw_strand_create(tw_strand **out, tw_service *service, tw_executor *executor)
{
	if (!out || !service)
		return tw__invalid("%s is NULL", out ? "service" : "out");
	if (!tw__executor_is_sound(executor))
		return tw__bad(-EINVAL, __func__, "executor");
	tw_strand *strand = tw__alloc_aligned(TW__CACHE_LINE, sizeof *strand);
	if (!strand)
		return -ENOMEM;
	memset(strand, 0, sizeof *strand);
	int r =
	    tw__object_init(&strand->object, service, executor, tw__strand_run_work, &strand_kind);
	if (r) {
		tw__free(strand);
		return r;
	}
	strand->executor.ops = &tw__object_ops;
	tw__line_init(&strand->line);
	*out = strand;
	return 0;
}

int tw_strand_destroy(tw_strand *strand)
{
	if (!strand || tw__object_destroy_forked(&strand->object))
		return 0;
	tw__object_lock(&strand->object);
	tw__strand_close(strand);
	tw__object_destroy(&strand->object);
	return 0;
}

/* ---------------------------------------------------------------------- looks */

int tw_strand_set_name(tw_strand *strand, const char *name)
{
	int r = TW__OBJECT_CHECK(strand, "strand");
	if (!r)
		tw__object_set_name(&strand->object, name);
	return r;
}

tw_executor *tw_strand_executor(tw_strand *strand)
{
	if (TW__OBJECT_CHECK(strand, "strand"))
		return NULL;
	tw__object_lock(&strand->object);
	strand->object.exposed = true;
	tw__object_unlock(&strand->object);
	return &strand->executor;
}

/* A release that a cancel or a close calls from elsewhere is not on the strand. */
tw_strand *tw_strand_current(void)
{
	for (const struct tw__inside *in = tw__innermost_inside; in; in = in->outer)
		if (!in->releasing && in->object->work.run == tw__strand_run_work)
			return tw__strand_of((struct tw__object *)in->object);
	return NULL;
}

int tw_strand_stats(tw_strand *strand, struct tw_strand_stats *out)
{
	int r = TW__OUT_CHECK(tw_strand_stats, out, delayed);
	if (!r)
		r = TW__OBJECT_CHECK(strand, "strand");
	if (r)
		return r;
	tw__object_lock(&strand->object);
	while (tw__strand_gather(strand)) {
		tw__object_unlock(&strand->object);
		tw__object_lock(&strand->object);
	}
	struct tw_strand_stats stats = {.queued = strand->queued,
					.delayed = strand->object.delays,
					.running = strand->running,
					.runs = strand->runs,
					.cancelled = strand->cancelled,
					.closed = tw__strand_closed(strand)};
	tw__object_unlock(&strand->object);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}
