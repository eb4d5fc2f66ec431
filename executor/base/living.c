/* The list of a service's living objects, and its part of a dump. Calls the nodes. */
#include "executor/base/object.h"

#include <inttypes.h>
#include <string.h>

#include "mpsc/base/reserve.h"
#include "mpsc/base/random.h"
#include "mpsc/base/text.h"

enum { LOOK_ROUNDS = 1 << 14 };

static struct tw__listed *listed_at(tw__link link)
{
	return TW__OWNER(struct tw__listed, place, link);
}

static struct tw__object *object_of(struct tw__listed *listed)
{
	return TW__OWNER(struct tw__object, listed, listed);
}

uint64_t tw__living_seed(tw_service *service)
{
	uint64_t nth = tw_add_relaxed(&tw__living_of(service)->seeds_drawn, 1);
	return tw__random_of(service->config.seed, nth);
}

/* ------------------------------------------------------------------------- looks */

static struct tw__times times_of(const struct tw__histogram *histogram)
{
	struct tw__times times = {0};
	if (!histogram)
		return times;
	times.sum_ns = tw_load_relaxed(&histogram->sum_ns);
	for (unsigned i = 0; i < TW_HISTOGRAM_BUCKETS; i++)
		times.count += tw_load_relaxed(&histogram->buckets[i]);
	return times;
}

/* The list's lock is held: the object stays. */
static void look_at(struct tw__object *object, struct tw__seen_object *seen)
{
	const struct tw__object_kind *kind = object->listed.kind;
	bool again = true;
	unsigned rounds = 0; /* a submitter may be as fast as the look */
	*seen = (struct tw__seen_object){.kind = kind->name};
	while (again && rounds++ < LOOK_ROUNDS) {
		tw__object_lock(object);
		again = kind->look(object, &seen->figures);
		if (object->listed.name)
			strncpy(seen->name, object->listed.name, TW__NAME_ROOM - 1);
		tw__object_unlock(object);
	}
	seen->queue = times_of(seen->figures.queue);
	seen->run = times_of(seen->figures.run);
}

void tw__living_visit(tw_service *service, tw__see_object_fn *see, void *context)
{
	struct tw__living *living = tw__living_of(service);
	struct tw__listed reader = {0};
	struct tw__seen_object seen;
	if (!living)
		return;
	tw__tiny_lock(&living->lock);
	for (tw__link *where = &living->objects.first; *where;) {
		struct tw__listed *listed = listed_at(*where);
		where = &listed->place.next;
		if (!listed->kind)
			continue;
		look_at(object_of(listed), &seen);
		tw__line_insert(&living->objects, where, &reader.place);
		tw__tiny_unlock(&living->lock);
		see(context, &seen);
		tw__tiny_lock(&living->lock);
		where = reader.place.where;
		tw__line_leave(&living->objects, &reader.place);
	}
	tw__tiny_unlock(&living->lock);
}

/* -------------------------------------------------------------------------- dump */

struct dump {
	FILE *out;
	uint64_t now_ns;
};

static void print_count(FILE *out, uint64_t count, const char *what)
{
	if (count)
		fprintf(out, ", %" PRIu64 " %s", count, what);
}

static void print_object(void *context, const struct tw__seen_object *seen)
{
	const struct dump *dump = context;
	const struct tw__figures *f = &seen->figures;
	fputs(seen->kind, dump->out);
	if (*seen->name) {
		fputs(" \"", dump->out);
		tw__text_put(dump->out, seen->name, TW__TEXT_PLAIN);
		fputc('"', dump->out);
	}
	fprintf(dump->out, ", %" PRIu64 " running, %" PRIu64 " waiting", f->running, f->waiting);
	if (f->since_ns && f->since_ns < dump->now_ns)
		fprintf(dump->out, " for %.3f ms", (double)(dump->now_ns - f->since_ns) / 1e6);
	print_count(dump->out, f->delayed, "delayed");
	print_count(dump->out, f->rejected, "rejected");
	print_count(dump->out, f->retried, "retried");
	print_count(dump->out, f->timed_out, "timed out");
	fputc('\n', dump->out);
}

static void living_dump(tw_service *service, FILE *out, uint64_t now_ns)
{
	struct dump dump = {out, now_ns};
	tw__living_visit(service, print_object, &dump);
}

/* ------------------------------------------------------------------ birth and end */

/* The service has been freed. */
static void living_free(struct tw__kept *kept)
{
	struct tw__living *living = (struct tw__living *)(void *)kept;
	while (living->retired.first)
		tw__object_dispose(object_of(listed_at(tw__line_pop(&living->retired))));
	tw__nodes_fini(&living->small);
	tw__free(living);
}

int tw__living_need(tw_service *service)
{
	struct tw__kept *none = NULL;
	if (tw__living_of(service))
		return 0;
	struct tw__living *made = tw__alloc_aligned(_Alignof(struct tw__living), sizeof *made);
	if (!made)
		return -ENOMEM;
	memset(made, 0, sizeof *made);
	made->kept.free = living_free;
	made->kept.dump = living_dump;
	tw__line_init(&made->objects);
	tw__line_init(&made->retired);
	tw__nodes_init(&made->small, TW__SMALL_NODE);
	if (!tw_cas_acq_rel(&service->kept, &none, &made->kept))
		living_free(&made->kept);
	return 0;
}
