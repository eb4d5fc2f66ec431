/*
 * A program's own executor, for stress: a few threads and a queue; it refuses and gives back at
 * random. And services whose tick, drive and executor are drawn.
 */
#ifndef TEST_STRESS_FOREIGN_H
#define TEST_STRESS_FOREIGN_H

#include "test/stress/stress.h"

enum { FOREIGN_THREADS_MOST = 4 };

struct foreign {
	tw_executor base;
	pthread_mutex_t lock;
	pthread_cond_t more;
	tw_batch **tickets; /* a ring of `room`, a power of two */
	size_t head, tail, room;
	bool stop;
	unsigned refuse_percent, give_back_percent;
	uint64_t seed;
	unsigned threads;
	pthread_t thread[FOREIGN_THREADS_MOST];
};

/* Whose thread this is, if it is one of a foreign's. */
static _Thread_local tw_executor *foreign_here;

static void foreign_grow(struct foreign *foreign)
{
	size_t room = foreign->room * 2;
	tw_batch **tickets = malloc(room * sizeof(*tickets));
	if (!tickets)
		abort();
	for (size_t i = foreign->head; i != foreign->tail; i++)
		tickets[i & (room - 1)] = foreign->tickets[i & (foreign->room - 1)];
	free(foreign->tickets);
	foreign->tickets = tickets;
	foreign->room = room;
}

static int foreign_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	struct foreign *foreign = (struct foreign *)self;
	int answer = -EAGAIN;
	pthread_mutex_lock(&foreign->lock);
	if (!random_percent(&foreign->seed, foreign->refuse_percent)) {
		while (foreign->tail - foreign->head + n > foreign->room)
			foreign_grow(foreign);
		for (size_t i = 0; i < n; i++)
			foreign->tickets[foreign->tail++ & (foreign->room - 1)] = batch;
		pthread_cond_broadcast(&foreign->more);
		answer = 0;
	}
	pthread_mutex_unlock(&foreign->lock);
	return answer;
}

/* NULL: asked to stop, and nothing is left. */
static tw_batch *foreign_take(struct foreign *foreign, bool *give_back)
{
	tw_batch *batch = NULL;
	pthread_mutex_lock(&foreign->lock);
	while (foreign->head == foreign->tail && !foreign->stop)
		pthread_cond_wait(&foreign->more, &foreign->lock);
	if (foreign->head != foreign->tail)
		batch = foreign->tickets[foreign->head++ & (foreign->room - 1)];
	*give_back = random_percent(&foreign->seed, foreign->give_back_percent);
	pthread_mutex_unlock(&foreign->lock);
	return batch;
}

static void *foreign_work(void *arg)
{
	bool give_back;
	tw_batch *batch;
	foreign_here = &((struct foreign *)arg)->base;
	while ((batch = foreign_take(arg, &give_back)) != NULL)
		if (give_back || tw_run_one(batch) < 0)
			tw_run_return(batch);
	return NULL;
}

/* Has up to `most` threads. */
static void foreign_start(struct foreign *foreign, unsigned most, uint64_t *seed)
{
	static const struct tw_executor_ops ops = {.size = sizeof(ops), .submit = foreign_submit};
	*foreign = (struct foreign){
	    .base = {.ops = &ops},
	    .lock = PTHREAD_MUTEX_INITIALIZER,
	    .more = PTHREAD_COND_INITIALIZER,
	    .tickets = malloc(64 * sizeof(tw_batch *)),
	    .room = 64,
	    .refuse_percent = random_percent(seed, 50) ? 20 : 0,
	    .give_back_percent = random_percent(seed, 50) ? 5 : 0,
	    .seed = random_next(seed),
	    .threads = 1 + (unsigned)random_below(seed, most),
	};
	if (!foreign->tickets)
		abort();
	for (unsigned i = 0; i < foreign->threads; i++)
		if (pthread_create(&foreign->thread[i], NULL, foreign_work, foreign) != 0)
			abort();
}

static void foreign_stop(struct foreign *foreign)
{
	pthread_mutex_lock(&foreign->lock);
	foreign->stop = true;
	pthread_cond_broadcast(&foreign->more);
	pthread_mutex_unlock(&foreign->lock);
	for (unsigned i = 0; i < foreign->threads; i++)
		pthread_join(foreign->thread[i], NULL);
	free(foreign->tickets);
}

struct drawn {
	tw_service *service;
	struct foreign foreign;
	bool is_foreign, is_inline, by_hand;
	pthread_t driver;
};

static void *drawn_drive(void *arg)
{
	uint64_t seed = 1;
	int answer = 0;
	while (answer >= 0 || answer == -EBUSY) {
		answer = tw_service_advance(
		    arg, random_percent(&seed, 50) ? TW_NO_LIMIT : 1 + random_below(&seed, 20));
		stress_sleep(random_below(&seed, TW_MILLISECOND));
	}
	return NULL;
}

/* cfg holds what the program has chosen. Its executor, workers and drive are drawn. */
static tw_service *drawn_open(struct drawn *drawn, struct tw_service_config cfg, uint64_t *seed)
{
	unsigned executor = (unsigned)random_below(seed, 4);
	drawn->is_inline = executor == 0;
	drawn->is_foreign = executor == 1;
	drawn->by_hand = random_percent(seed, 20);
	cfg.drive = drawn->by_hand ? TW_DRIVE_MANUAL : TW_DRIVE_THREAD;
	if (drawn->is_foreign)
		foreign_start(&drawn->foreign, FOREIGN_THREADS_MOST, seed);
	if (executor > 1)
		cfg.workers = 1 + (uint32_t)random_below(seed, 4);
	else
		cfg.executor = drawn->is_inline ? tw_executor_inline() : &drawn->foreign.base;
	drawn->service = open_service(cfg);
	if (drawn->by_hand &&
	    pthread_create(&drawn->driver, NULL, drawn_drive, drawn->service) != 0)
		violation("no thread for the driver", 0);
	return drawn->service;
}

/*
 * A drain gives callbacks a second: less than this process may have to wait for a processor. So a
 * close that has timed out is followed by one that has no timeout.
 */
static void drawn_close(struct drawn *drawn, enum tw_close_mode mode, uint64_t timeout_ns)
{
	int answer = tw_service_close(drawn->service, mode, timeout_ns);
	if (answer == -ETIMEDOUT)
		answer = tw_service_close(
		    drawn->service, mode == TW_CLOSE_DRAIN ? TW_CLOSE_DROP : mode, TW_FOREVER);
	wanted("tw_service_close", answer, 0);
}

/* It is sound and closed, and no other thread uses it. */
static void drawn_end(struct drawn *drawn)
{
	char why[256] = "";
	if (drawn->by_hand)
		pthread_join(drawn->driver, NULL);
	wanted(why, tw_service_validate(drawn->service, why, sizeof why), 0);
	wanted("tw_service_destroy", tw_service_destroy(drawn->service), 0);
	if (drawn->is_foreign)
		foreign_stop(&drawn->foreign);
}

#endif
