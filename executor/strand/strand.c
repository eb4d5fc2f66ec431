/* A strand's creation, end, and looks at it. Calls the base; see internal.h. */
#include "executor/strand/run.h"
#include "executor/strand/submit.h"

#include <string.h>

/* ---------------------------------------------------------- the strands of a service */

/* The service is about to be freed, or has just been. */
static void strands_free(struct tw__kept *kept)
{
	struct tw__strands *strands = (struct tw__strands *)kept;
	for (tw_strand *strand = tw_load_acquire(&strands->retired), *next; strand; strand = next) {
		next = (tw_strand *)strand->line.first;
		free(strand);
	}
	tw__nodes_fini(&strands->tasks);
	free(strands);
}

static struct tw__strands *strands_of(tw_service *service)
{
	/* pairs with need_strands */
	return (struct tw__strands *)tw_load_acquire(&service->layers.strands);
}

/* Creates them with the first strand. Returns 0 or -ENOMEM. */
static int need_strands(tw_service *service)
{
	struct tw__kept *none = NULL;
	if (strands_of(service))
		return 0;
	struct tw__strands *made = calloc(1, sizeof *made);
	if (!made)
		return -ENOMEM;
	made->kept.free = strands_free;
	tw__nodes_init(&made->tasks, sizeof(struct tw__item));
	if (!tw_cas_acq_rel(&service->layers.strands, &none, &made->kept))
		strands_free(&made->kept);
	return 0;
}

/* ------------------------------------------------------------------ birth and end */

/* The driver may still offer to one that was an executor: it stays until the service ends. */
static void strand_free(struct tw__object *object)
{
	tw_strand *strand = tw__strand_of(object);
	struct tw__strands *strands = strands_of(tw__object_service(object));
	if (!strand->exposed) {
		free(strand);
		return;
	}
	tw_strand *next = tw_load_relaxed(&strands->retired);
	do {
		strand->line.first = (tw__link)next;
	} while (!tw_cas_acq_rel(&strands->retired, &next, strand));
}

int tw_strand_create(tw_strand **out, tw_service *service, tw_executor *executor)
{
	if (!out || !service)
		return tw__invalid("%s is NULL", out ? "service" : "out");
	if (!tw__executor_is_sound(executor))
		return tw__bad(-EINVAL, __func__, "executor");
	tw_strand *strand = aligned_alloc(TW__CACHE_LINE, sizeof *strand);
	if (!strand)
		return -ENOMEM;
	memset(strand, 0, sizeof *strand);
	int r =
	    tw__object_init(&strand->object, service, executor, tw__strand_run_work, strand_free);
	if (r) {
		free(strand);
		return r;
	}
	r = need_strands(service);
	if (r) {
		tw__object_lock(&strand->object);
		tw__object_drop(&strand->object, 1);
		return r;
	}
	strand->executor.ops = &tw__object_ops;
	strand->tasks = &strands_of(service)->tasks;
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

tw_executor *tw_strand_executor(tw_strand *strand)
{
	if (TW__OBJECT_CHECK(strand, "strand"))
		return NULL;
	tw__object_lock(&strand->object);
	strand->exposed = true;
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
