/* What the C++ tests share. */
#ifndef TEST_CPP_SUPPORT_HPP
#define TEST_CPP_SUPPORT_HPP

#include <atomic>
#include <initializer_list>

#include "check.hpp"
#include "tickwheel/layers.hpp"

using namespace std::chrono_literals;

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

/* The call, which stores its error in `refusal`, is refused, and what it captured is gone. */
#define REFUSED(code, call)                       \
	do {                                      \
		std::error_code refusal;          \
		int before = counted::alive;      \
		call;                             \
		CHECK(refusal.value() == (code)); \
		CHECK(counted::alive == before);  \
	} while (0)

/* A test, alone or with a service that it drives. */
struct test {
	void (*alone)() = nullptr;
	void (*by_hand)(manual_clock &clock, tickwheel::service &service) = nullptr;
	test(void (*function)()) : alone(function)
	{
	}
	test(void (*function)(manual_clock &, tickwheel::service &)) : by_hand(function)
	{
	}
};

inline void run_tests(const char *name, std::initializer_list<test> tests)
{
	for (const test &each : tests) {
		if (each.alone) {
			each.alone();
		} else {
			manual_clock clock;
			tickwheel::service service(clock.config());
			each.by_hand(clock, service);
		}
		CHECK(counted::alive == 0);
	}
	std::printf("%s: ok (%d checks)\n", name, checks.load());
}

#endif
