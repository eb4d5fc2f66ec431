/*
 * Events come while a run is under way, and the debounce is freed then. Each event is followed by a
 * run that begins quiet_ns after it or later. WRONG: only the last timer is cancelled, so an
 * earlier run may still use what is freed. /
 */
#include "debounce.h"
#include "support.h"

enum { ROUNDS = 300 };

static atomic_int runs, slow, inside;
static _Atomic uint64_t ran_at_ns;

static void save(void *arg)
{
	struct debounce *d = arg;
	ran_at_ns = tw_service_now(d->service);
	inside = 1;
	if (slow)
		outlast_the_free();
	runs += d->quiet_ns != 0;
}

static struct debounce *begin(tw_service *service)
{
	struct debounce *d = zeroed(sizeof *d);
	*d = (struct debounce){.service = service, .quiet_ns = TW_SECOND, .fn = save, .arg = d};
	CHECK(tw_group_create(&d->group, d->service) == 0);
	return d;
}

/* Many events are one run, a second after the last. */
static void once(tw_service *service)
{
	struct debounce *d = begin(service);
	uint64_t last_ns = 0;
	for (int i = 0; i < 10; i++) {
		CHECK(debounce_event(d) == 0);
		last_ns = tw_service_now(service);
		advance(900 * TW_MILLISECOND);
		CHECK(runs == 0);
	}
	advance(200 * TW_MILLISECOND);
	await_at_least(&runs, 1);
	CHECK(runs == 1);
	CHECK(ran_at_ns >= last_ns + TW_SECOND);
	debounce_close(d);
	free(d);
}

/* An event races with a run: what it announced is followed by a run. */
static void race(tw_service *service)
{
	unsigned seed = 1;
	for (int i = 0; i < ROUNDS; i++) {
		struct debounce *d = begin(service);
		CHECK(debounce_event(d) == 0);
		mover_start(1, TW_SECOND + 2 * TW_MILLISECOND);
		jitter(&seed, 200);
		uint64_t event_ns = tw_service_now(service);
		CHECK(debounce_event(d) == 0);
		mover_join();
		advance(TW_SECOND + 2 * TW_MILLISECOND);
		while (ran_at_ns < event_ns + TW_SECOND)
			usleep(100);
		debounce_close(d);
		free(d);
	}
}

static void wrong_close(struct debounce *d)
{
	tw_cancel_wait(d->service, d->timer, TW_FOREVER);
}

int main(int argc, char **argv)
{
	read_way(argc, argv);
	tw_service *service = service_by_hand();
	once(service);
	race(service);

	struct debounce *d = begin(service);
	slow = 1;
	inside = 0;
	CHECK(debounce_event(d) == 0);
	advance(TW_SECOND + 2 * TW_MILLISECOND);
	while (!inside)
		usleep(100);
	CHECK(debounce_event(d) == 0); /* a second timer, beside the run */
	(wrong ? wrong_close : debounce_close)(d);
	free(d);
	freed_early = true;
	return end_of(service);
}
