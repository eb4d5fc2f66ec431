/* The first check that does not hold ends a test program. */
#ifndef TEST_CPP_CHECK_HPP
#define TEST_CPP_CHECK_HPP

#include <atomic>
#include <cstdio>
#include <cstdlib>

inline std::atomic<int> checks;

#define CHECK(holds) check((holds), #holds, __FILE__, __LINE__)

inline void check(bool holds, const char *what, const char *file, int line)
{
	checks++;
	if (holds)
		return;
	std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
	std::exit(1);
}

#endif
