/*
 * The loop closes a session while its idle timeout and its reads run on the strand. WRONG: it frees
 * without waiting for the strand.
 */
#include "session_strand.h"
#include "support.h"

enum { ROUNDS = 300 };

static tw_clock *hand;
static atomic_int entered;

static void read_slowly(void *arg)
{
	entered = 1;
	outlast_the_free();
	on_read(arg);
}

static void *move_clock(void *arg)
{
	(void)arg;
	tw_clock_manual_advance_by(hand, 61 * TW_SECOND);
	return NULL;
}

static struct session *open_session(tw_service *service, int *peer)
{
	struct session *s = zeroed(sizeof *s);
	int fds[2];
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	*s = (struct session){.service = service, .fd = fds[0]};
	*peer = fds[1];
	CHECK(session_open(s) == 0);
	return s;
}

static void wrong_close(struct session *s)
{
	tw_strand *strand = s->strand;
	tw_cancel(s->service, s->idle);
	tw_strand_close(strand, 0);
	close(s->fd);
	free(s);
	freed_early = true;
	tw_strand_destroy(strand);
}

int main(int argc, char **argv)
{
	read_way(argc, argv);
	tw_service *service = service_by_hand(&hand);
	unsigned seed = 1;
	int peer;
	for (int i = 0; i < ROUNDS; i++) {
		struct session *s = open_session(service, &peer);
		pthread_t mover;
		CHECK(pthread_create(&mover, NULL, move_clock, NULL) == 0);
		for (int reads = 0; reads < 5; reads++)
			CHECK(session_readable(s) == 0);
		jitter(&seed, 300);
		session_close(s);
		close(peer);
		pthread_join(mover, NULL);
	}
	struct session *s = open_session(service, &peer);
	CHECK(tw_strand_submit(s->strand, read_slowly, s) == 0);
	while (!entered)
		usleep(100);
	(wrong ? wrong_close : session_close)(s);
	close(peer);
	CHECK(tw_service_destroy(service) == 0);
	return tw_clock_manual_destroy(hand);
}
