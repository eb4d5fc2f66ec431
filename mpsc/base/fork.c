#include "mpsc/base/fork.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpsc/base/atomics.h"

pthread_mutex_t tw__registry = PTHREAD_MUTEX_INITIALIZER;

/* A head that the kernel does not wipe; is at the start of the head's own page. */
struct unwiped {
	_Atomic(struct unwiped *) next;
	void *head;
	size_t bytes;
};

/* changed under the registry's lock; walked by the handler without */
static _Atomic(struct unwiped *) first_unwiped;
static _Atomic uint32_t generation;

static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
static bool watching;

static void fork_after_fork_in_child(void)
{
	tw__registry = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	for (struct unwiped *u = tw_load_relaxed(&first_unwiped); u;
	     u = tw_load_relaxed(&u->next)) /* the only thread */
		memset(u->head, 0, u->bytes);
	tw_store_relaxed(&first_unwiped, NULL);
	tw_add_relaxed(&generation, 1);
}

static void fork_watch(void)
{
	watching = pthread_atfork(NULL, NULL, fork_after_fork_in_child) == 0;
}

bool tw__fork_watch(void)
{
	pthread_once(&watch_once, fork_watch);
	return watching;
}

uint32_t tw__fork_generation(void)
{
	return tw_load_relaxed(&generation); /* changes only while the process has one thread */
}

/* In order at each step: a fork by another thread may come between any two. */
static void to_be_wiped(struct unwiped *at, void *head, size_t bytes)
{
	at->head = head;
	at->bytes = bytes;
	pthread_mutex_lock(&tw__registry);
	tw_store_relaxed(&at->next, tw_load_relaxed(&first_unwiped));
	tw_store_release(&first_unwiped, at); /* after what it points to */
	pthread_mutex_unlock(&tw__registry);
}

static void fork_forget(struct unwiped *unwiped)
{
	pthread_mutex_lock(&tw__registry);
	_Atomic(struct unwiped *) *at = &first_unwiped;
	struct unwiped *found;
	while ((found = tw_load_relaxed(at)) && found != unwiped)
		at = &found->next;
	if (found)
		tw_store_release(at, tw_load_relaxed(&found->next));
	pthread_mutex_unlock(&tw__registry);
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/*
 * The head is the end of a page of its own, the rest begins the next one. From the ordinary
 * allocator, whose memory is private and anonymous (if not, madvise says so), so that leak checkers
 * follow its pointers.
 */
void *tw__wiped_alloc(size_t head, size_t rest)
{
	size_t page = page_bytes(), bytes = page + (rest + page - 1) / page * page;
	if (!tw__fork_watch())
		return NULL;
	char *base = aligned_alloc(page, bytes);
	if (!base)
		return NULL;
	memset(base, 0, bytes);
	if (madvise(base, page, MADV_WIPEONFORK))
		to_be_wiped((struct unwiped *)(void *)base, base + page - head, head);
	return base + page - head;
}

void tw__wiped_free(void *at, size_t head)
{
	size_t page = page_bytes();
	char *base = (char *)at + head - page;
	fork_forget((struct unwiped *)(void *)base);
	/* the next owner's children are to find it as it was */
	madvise(base, page, MADV_KEEPONFORK);
	free(base);
}
