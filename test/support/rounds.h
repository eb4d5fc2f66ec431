/* How often a test that goes on with new random programs does so. */
#ifndef TEST_SUPPORT_ROUNDS_H
#define TEST_SUPPORT_ROUNDS_H

/*
 * Under a checker a program takes ten times as long, or more: a quarter of them. `make test` and
 * the fuzz targets have them all.
 */
static inline unsigned rounds(unsigned n)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(COVERAGE)
	return (n + 3) / 4;
#else
	return n;
#endif
}

#endif
