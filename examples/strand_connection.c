/*
 * A connection as a strand. Reads, the idle timeout and the close never overlap, on any number of
 * workers, and the connection needs no lock.
 *
 * The close closes the strand, which cancels all tasks that have not run. Meanwhile the loop may be
 * about to submit, which is refused then. So the loop frees the connection, after the strand's last
 * task has told it.
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "tickwheel/layers.h"

struct connection {
	tw_strand *strand;
	tw_strand_task_id idle;
	const char *name;
	int reads; /* plain: only the strand's tasks touch it */
	sem_t *closed;
};

static void close_connection(struct connection *c, const char *why)
{
	printf("%s: %s after %d reads\n", c->name, why, c->reads);
	tw_strand_close(c->strand, 0); /* no other task begins; allowed in its own task */
	sem_post(c->closed);
}

static void on_idle(void *arg)
{
	close_connection(arg, "idle for too long, closed");
}

static void watch(struct connection *c)
{
	tw_strand_cancel(c->strand, c->idle); /* on the strand: it does not run, and will not */
	if (tw_strand_schedule(c->strand, 50 * TW_MILLISECOND, on_idle, c, &c->idle))
		close_connection(c, "no memory, closed");
}

static void on_read(void *arg)
{
	struct connection *c = arg;
	c->reads++;
	watch(c);
}

static void on_hang_up(void *arg)
{
	close_connection(arg, "the peer has hung up");
}

static struct connection *open_connection(tw_service *service, const char *name, sem_t *closed)
{
	struct connection *c = calloc(1, sizeof(*c));
	if (c == NULL || tw_strand_create(&c->strand, service, NULL) != 0) {
		free(c);
		return NULL;
	}
	c->name = name;
	c->closed = closed;
	return c;
}

static void free_connection(struct connection *c)
{
	tw_strand_destroy(c->strand); /* waits for the task that closed the strand */
	free(c);
}

int main(void)
{
	tw_service *service;
	sem_t closed;
	sem_init(&closed, 0, 0);
	if (tw_service_create(&service, NULL) != 0)
		return 1;
	struct connection *polite = open_connection(service, "polite", &closed);
	struct connection *silent = open_connection(service, "silent", &closed);
	if (polite == NULL || silent == NULL)
		return 1;

	for (int i = 0; i < 1000; i++) { /* what a loop does on each readable event */
		tw_strand_submit(polite->strand, on_read, polite);
		tw_strand_submit(silent->strand, on_read, silent);
	}
	tw_strand_submit(polite->strand, on_hang_up, polite);

	for (int left = 2; left > 0;)
		left -= sem_wait(&closed) == 0;
	free_connection(polite);
	free_connection(silent);
	return tw_service_destroy(service) ? 1 : 0;
}
