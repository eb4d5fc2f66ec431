#include "mpsc/base/reserve.h"

#include <errno.h>
#include <sys/mman.h>

/* The smallest page of all systems. The kernel rounds up to its own. */
enum { PAGE_BYTES = 4096 };

static void *map_page(void)
{
	return mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/*
 * mmap would lock and fill the whole mapping under mlockall(MCL_FUTURE), and has no flag against
 * that. mremap keeps the state of what it grows. So one page is mapped, unlocked and grown.
 */
void *tw__reserve(size_t bytes)
{
	void *page = map_page();
	if (page == MAP_FAILED)
		return NULL;
	munlock(page, PAGE_BYTES); /* cannot fail: the page is mapped */
	void *at = mremap(page, PAGE_BYTES, bytes, MREMAP_MAYMOVE);
	if (at != MAP_FAILED)
		return at;
	munmap(page, PAGE_BYTES);
	return NULL;
}

/* A new page is filled before anybody touches it only if the process locks its memory. */
int tw__new_memory_is_locked(void)
{
	void *page = map_page();
	if (page == MAP_FAILED)
		return errno == EAGAIN ? -EAGAIN : -ENOMEM;
	unsigned char filled = 0;
	int locked = mincore(page, PAGE_BYTES, &filled) == 0 && filled & 1;
	munmap(page, PAGE_BYTES);
	return locked;
}
