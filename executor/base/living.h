/*
 * What the layers keep with a service: the list of its living objects (tw_service_dump, the
 * Prometheus page), and what outlives them. Made with the first object, freed with the service.
 *
 * The list's lock keeps the objects. A reader looks at one for each hold; in between it has a place
 * of its own in the list.
 */
#ifndef TW_EXECUTOR_LIVING_H
#define TW_EXECUTOR_LIVING_H

#include "executor/base/handles.h"
#include "mpsc/base/histogram.h"
#include "wheel/core/service.h"

/* What an object is about at a moment. */
struct tw__figures {
	uint64_t running, waiting, delayed;
	uint64_t since_ns; /* when the first one that waits came; 0: not known */
	uint64_t rejected, retried, timed_out;
	const struct tw__histogram *queue, *run; /* NULL: it has none */
};

/* A kind of objects. Constant. */
struct tw__object_kind {
	const char *name;                        /* for people; NULL: not listed */
	size_t size, offset;                     /* of the struct; of the object in it */
	void (*fini)(struct tw__object *object); /* or NULL; before the struct is freed */
	/* Fills in figures, which are zeros. The object's lock is held. True: it goes on. */
	bool (*look)(struct tw__object *object, struct tw__figures *out);
};

/* An object's part. */
struct tw__listed {
	struct tw__in_line place;           /* where NULL: in no list */
	const struct tw__object_kind *kind; /* NULL: the place of a reader */
	const char *name;                   /* the user's, or NULL; under the object's lock */
};

/* Bytes of a node of objects that are too small for a table of their own. */
enum { TW__SMALL_NODE = 128 };

struct tw__living {
	struct tw__kept kept; /* first */
	_Atomic uint32_t lock;
	struct tw__line objects;
	struct tw__line retired; /* have ended, and are freed with the service */
	_Atomic uint64_t seeds_drawn;
	_Alignas(TW__CACHE_LINE) struct tw__nodes small;
};

/* NULL: the service has had no object. */
static inline struct tw__living *tw__living_of(tw_service *service)
{
	return (struct tw__living *)(void *)tw_load_acquire(&service->kept); /* pairs with need */
}

/* Returns 0 or -ENOMEM. */
int tw__living_need(tw_service *service);

/* The service's seed and the order of the draws decide it. */
uint64_t tw__living_seed(tw_service *service);

enum { TW__NAME_ROOM = 64 };

/* Durations of a histogram. */
struct tw__times {
	uint64_t count, sum_ns;
};

struct tw__seen_object {
	const char *kind;
	char name[TW__NAME_ROOM]; /* its beginning; "": none */
	struct tw__figures figures;
	struct tw__times queue, run;
};

typedef void tw__see_object_fn(void *context, const struct tw__seen_object *seen);

/* Calls see for each listed object, without a lock. */
void tw__living_visit(tw_service *service, tw__see_object_fn *see, void *context);

#endif
