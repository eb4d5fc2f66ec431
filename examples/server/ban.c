/*
 * Chained hash table. Each offender has one timer, which each misdeed moves to later. When it runs,
 * the ban and the record of misdeeds end.
 *
 * The timer's arg is the address itself, not the entry, so nothing can dangle. As in timeout.h the
 * handle says whether a callback still counts: one that lost the race against a further misdeed
 * finds another handle in the entry.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "examples/server/ban.h"

#define CHAINS 256u
#define MAX_OFFENDERS 16384u
#define STRIKES 3u

struct offender {
	struct offender *next;
	uint32_t address;
	unsigned strikes;
	tw_timer timer;
};

static struct {
	tw_service *service;
	uint64_t ban_ns;
	_Atomic uint64_t banned; /* written under lock */
	pthread_mutex_t lock;    /* guards the rest */
	struct offender *chains[CHAINS];
	unsigned offenders;
	struct ban_figures figures;
} bans = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ban_init(tw_service *service, uint64_t ban_ns)
{
	bans.service = service;
	bans.ban_ns = ban_ns;
}

/* The link that points to the offender, or to the end of its chain. */
static struct offender **find(uint32_t address)
{
	struct offender **link = &bans.chains[(address * 2654435761u >> 16) % CHAINS];
	while (*link != NULL && (*link)->address != address)
		link = &(*link)->next;
	return link;
}

static void forget(struct offender **link)
{
	struct offender *o = *link;
	*link = o->next;
	bans.offenders--;
	if (o->strikes >= STRIKES) {
		bans.banned--;
		bans.figures.lifted++;
	}
	free(o);
}

static void on_forgiven(void *arg)
{
	pthread_mutex_lock(&bans.lock);
	struct offender **link = find((uint32_t)(uintptr_t)arg);
	if (*link != NULL && (*link)->timer.id == tw_self().id)
		forget(link);
	pthread_mutex_unlock(&bans.lock);
}

/* Without a timer the ban would never end. So there is none. */
static bool arm(struct offender *o)
{
	uint64_t deadline_ns = tw_service_now(bans.service) + bans.ban_ns;
	if (o->timer.id != 0 && tw_reset_at(bans.service, o->timer, deadline_ns) == 0)
		return true;
	o->timer = (tw_timer){0};
	return tw_schedule_at(bans.service, deadline_ns, on_forgiven, (void *)(uintptr_t)o->address,
			      &o->timer) == 0;
}

static struct offender *add(struct offender **end, uint32_t address)
{
	struct offender *o = bans.offenders < MAX_OFFENDERS ? calloc(1, sizeof(*o)) : NULL;
	if (o != NULL) {
		o->address = address;
		*end = o;
		bans.offenders++;
	}
	return o;
}

void ban_strike(uint32_t address)
{
	pthread_mutex_lock(&bans.lock);
	struct offender **link = find(address);
	struct offender *o = *link != NULL ? *link : add(link, address);
	if (o != NULL && ++o->strikes == STRIKES) {
		bans.banned++;
		bans.figures.begun++;
	}
	if (o != NULL && !arm(o))
		forget(link);
	pthread_mutex_unlock(&bans.lock);
}

bool ban_refuses(uint32_t address)
{
	if (atomic_load_explicit(&bans.banned, memory_order_relaxed) == 0)
		return false;
	pthread_mutex_lock(&bans.lock);
	struct offender *o = *find(address);
	bool refused = o != NULL && o->strikes >= STRIKES;
	pthread_mutex_unlock(&bans.lock);
	return refused;
}

void ban_figures(struct ban_figures *out)
{
	pthread_mutex_lock(&bans.lock);
	*out = bans.figures;
	pthread_mutex_unlock(&bans.lock);
}

void ban_free(void)
{
	for (unsigned i = 0; i < CHAINS; i++)
		while (bans.chains[i] != NULL)
			forget(&bans.chains[i]);
}
