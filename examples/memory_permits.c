/*
 * Memory as permits: 64 of them, one for each megabyte. A picture takes as many as it needs, in one
 * call, and gives them back when it is drawn.
 *
 * Small pictures come all the time. The large one keeps its place in line, so the small ones that
 * came later wait until it has had its turn. It does not wait forever for a quiet moment.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <tickwheel/layers.h>

enum { MEGABYTES = 64, SMALL = 4, LARGE = 60, PICTURES = 200, LARGE_AT = 50 };

struct picture {
	int number;
	int32_t megabytes;
};

static tw_service *service;
static tw_semaphore *memory;
static atomic_int in_use, most, drawn, drawn_before_large;

static void on_drawn(void *arg)
{
	struct picture *picture = arg;
	if (picture->number == LARGE_AT)
		drawn_before_large = drawn;
	drawn++;
	in_use -= picture->megabytes;
	tw_semaphore_release(memory, picture->megabytes);
}

/* Called with the picture's permits. */
static void draw(void *arg)
{
	struct picture *picture = arg;
	int now = in_use += picture->megabytes, before = most;
	while (now > before && !atomic_compare_exchange_weak(&most, &before, now)) {
	}
	if (tw_schedule(service, TW_MILLISECOND, on_drawn, picture, NULL) < 0)
		on_drawn(picture);
}

int main(void)
{
	static struct picture pictures[PICTURES];
	if (tw_service_create(&service, NULL) < 0 ||
	    tw_semaphore_create(&memory, service, NULL, MEGABYTES) < 0)
		return 1;
	for (int i = 0; i < PICTURES; i++) {
		pictures[i] =
		    (struct picture){.number = i, .megabytes = i == LARGE_AT ? LARGE : SMALL};
		if (tw_semaphore_acquire_async(memory, pictures[i].megabytes, draw, &pictures[i],
					       NULL) < 0)
			return 1;
	}
	if (tw_semaphore_acquire(memory, MEGABYTES + 1, 0) >= 0)
		return 1; /* refused: there are not that many */
	while (drawn < PICTURES)
		/* Last in line. */
		if (tw_semaphore_acquire(memory, MEGABYTES, 10 * TW_SECOND) == 0)
			tw_semaphore_release(memory, MEGABYTES);
	while (tw_semaphore_destroy(memory) < 0) { /* a function may be about to return */
	}
	tw_service_destroy(service);
	printf("%d pictures, at most %d MB at a time, %d before the large one\n", PICTURES,
	       (int)most, (int)drawn_before_large);
	return most <= MEGABYTES && drawn_before_large >= LARGE_AT - 16 &&
		       drawn_before_large <= LARGE_AT + 1
		   ? 0
		   : 1;
}
