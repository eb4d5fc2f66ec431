/* What the C++ tests share. */
#ifndef TEST_CPP_SUPPORT_HPP
#define TEST_CPP_SUPPORT_HPP

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "tickwheel/layers.hpp"

using namespace std::chrono_literals;

inline int checks;

#define CHECK(holds) check((holds), #holds, __FILE__, __LINE__)

inline void check(bool holds, const char *what, const char *file, int line)
{
	checks++;
	if (holds)
		return;
	std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
	std::exit(1);
}

struct manual_clock {
	tw_clock *clock = nullptr;
	manual_clock()
	{
		CHECK(tw_clock_manual_create(&clock, 1000000000) == 0);
	}
	~manual_clock()
	{
		CHECK(tw_clock_manual_destroy(clock) == 0);
	} /* -EBUSY if a service had been leaked */
	void advance(std::chrono::nanoseconds by)
	{
		CHECK(tw_clock_manual_advance_by(clock, static_cast<uint64_t>(by.count())) == 0);
	}
	tw_service_config config() const
	{
		tw_service_config c = {};
		c.clock = clock;
		c.drive = TW_DRIVE_MANUAL;
		c.executor = tw_executor_inline();
		return c;
	}
};

/* Counts how many live. */
struct counted {
	static inline std::atomic<int> alive;
	counted()
	{
		alive++;
	}
	counted(const counted &)
	{
		alive++;
	}
	counted(counted &&) noexcept
	{
		alive++;
	}
	~counted()
	{
		alive--;
	}
};

#endif
