/*
 * asio::steady_timer and tickwheel::asio::timer side by side: one thread, one io_context, 10,000
 * timers that wait. `make bench-asio` prints nanoseconds an operation and the ratio.
 *
 *   request   arm a timeout of 5 s and cancel it, while all others are due later: what a request
 *             does beside idle connections
 *   mixed     the same with a timeout of 1 to 61 s, so half of the others are due earlier
 *   renew     push back one of the idle timeouts, each in its turn at random: cancel and arm
 *
 * An operation includes the call of the cancelled wait's handler, and the clock that expires_after
 * reads. The two take turns, and each figure is the median of its repetitions.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

#include <asio.hpp>

#include "tickwheel_asio.hpp"

namespace
{

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr int idle_timers = 10000, operations = 200000, per_turn = 64, repetitions = 9;
constexpr double wanted_ratio = 5;

enum work { request, mixed, renew, works };
const char *const names[works] = {"request", "mixed", "renew"};

long calls; /* of handlers */

template <class Timer> class rig
{
      public:
	rig()
	{
		for (int i = 0; i < idle_timers; i++) {
			idle_.emplace_back(io_);
			arm(idle_.back(), 30s + std::chrono::milliseconds(i));
		}
		io_.poll();
	}
	~rig()
	{
		idle_.clear();
		io_.poll();
	}

	double ns_per_operation(work which)
	{
		auto begun = clock_type::now();
		for (int i = 1; i <= operations; i++) {
			operate(which);
			if (i % per_turn == 0)
				io_.poll();
		}
		std::chrono::duration<double, std::nano> took = clock_type::now() - begun;
		return took.count() / operations;
	}

      private:
	void arm(Timer &timer, clock_type::duration delay)
	{
		timer.expires_after(delay);
		timer.async_wait([this](const asio::error_code &) { calls++; });
	}
	void operate(work which)
	{
		random_ = random_ * 1664525 + 1013904223;
		if (which == renew)
			return arm(idle_[(random_ >> 8) % idle_timers], 30s);
		arm(request_,
		    which == mixed ? 1s + std::chrono::milliseconds((random_ >> 8) % 60000) : 5s);
		request_.cancel();
	}

	asio::io_context io_;
	std::deque<Timer> idle_;
	Timer request_{io_};
	unsigned random_ = 1;
};

double median(std::vector<double> figures)
{
	std::nth_element(figures.begin(), figures.begin() + repetitions / 2, figures.end());
	return figures[repetitions / 2];
}

} // namespace

int main()
{
	rig<asio::steady_timer> theirs;
	rig<tickwheel::asio::timer> ours;
	double ratios[works];
	std::printf("%-10s %24s %24s %8s\n", "ns", "asio::steady_timer", "tickwheel::asio::timer",
		    "ratio");
	for (int which = 0; which < works; which++) {
		std::vector<double> their_ns, our_ns;
		for (int i = 0; i < repetitions; i++) {
			their_ns.push_back(theirs.ns_per_operation(static_cast<work>(which)));
			our_ns.push_back(ours.ns_per_operation(static_cast<work>(which)));
		}
		ratios[which] = median(their_ns) / median(our_ns);
		std::printf("%-10s %24.1f %24.1f %8.2f\n", names[which], median(their_ns),
			    median(our_ns), ratios[which]);
	}
	bool reached = ratios[request] >= wanted_ratio;
	std::printf("request: %.1f times cheaper, wanted %.0f: %s\n", ratios[request], wanted_ratio,
		    reached ? "reached" : "NOT reached");
	return reached ? 0 : 1;
}
