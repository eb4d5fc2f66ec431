/* Arrays of a test that are too big to be static. */
#ifndef TW_TEST_SUPPORT_BIG_H
#define TW_TEST_SUPPORT_BIG_H

#include <stdlib.h>

#include "test/support/expect.h"

/*
 * Zeroed; lives as long as the test's process. LeakSanitizer reads every static array of the
 * program at the end of each test, so all tests would pay for it.
 */
static inline void *big_array(size_t n, size_t size)
{
	void *array = calloc(n, size);
	cr_assert(array);
	return array;
}

#endif
