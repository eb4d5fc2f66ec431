/*
 * tickwheel.hpp on a manual clock: each line says what must hold; the first that does not ends the
 * program.
 */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "support.hpp"

namespace
{

/* The errno of what f throws, 0 if nothing. */
template <class F> int thrown(F f)
{
	try {
		f();
	} catch (const std::system_error &e) {
		return e.code().category() == std::generic_category() ? e.code().value() : -1;
	}
	return 0;
}

template <template <class> class Call, class T, class = void> constexpr bool compiles = false;
template <template <class> class Call, class T>
constexpr bool compiles<Call, T, std::void_t<Call<T>>> = true;

template <class T>
using schedule_at = decltype(std::declval<tickwheel::service &>().schedule_at(
    std::declval<T>(), std::declval<void (*)()>()));
template <class T>
using reset_at = decltype(std::declval<tickwheel::timer &>().reset_at(std::declval<T>()));

template <class T>
constexpr bool some_call_takes = compiles<schedule_at, T> || compiles<reset_at, T>;

void an_instant_of_another_clock_does_not_compile()
{
	static_assert(compiles<schedule_at, tickwheel::time_point>);
	static_assert(compiles<reset_at, tickwheel::time_point>);
	static_assert(!some_call_takes<std::chrono::steady_clock::time_point>);
	static_assert(!some_call_takes<std::chrono::system_clock::time_point>);
	static_assert(!some_call_takes<std::chrono::nanoseconds>);
	static_assert(!some_call_takes<std::uint64_t>);
#if defined(__cpp_impl_coroutine)
	using awaited = tickwheel::after_awaitable;
	static_assert(std::is_constructible_v<awaited, tw_service *, tickwheel::time_point>);
	static_assert(
	    !std::is_constructible_v<awaited, tw_service *, std::chrono::steady_clock::time_point>);
	static_assert(!std::is_constructible_v<awaited, tw_service *, std::uint64_t>);
#endif
}

void a_callable_runs_when_its_time_has_come_and_is_destroyed_after_it(manual_clock &clock,
								      tickwheel::service &service)
{
	int runs = 0;
	tickwheel::timer t = service.schedule(5ms, [&runs, c = counted()] { runs++; });
	CHECK(counted::alive == 1 && t.is_pending());
	clock.advance(4ms);
	CHECK(runs == 0);
	clock.advance(3ms);
	CHECK(runs == 1 && counted::alive == 0 && !t.is_pending());
	CHECK(t.cancel() == tickwheel::outcome::gone);
}

void a_move_only_callable_is_taken(manual_clock &clock, tickwheel::service &service)
{
	int seen = 0;
	auto t = service.schedule(1ms, [p = std::make_unique<int>(7), &seen] { seen = *p; });
	clock.advance(3ms);
	CHECK(seen == 7);
}

void cancel_keeps_it_from_running_and_destroys_the_callable(manual_clock &clock,
							    tickwheel::service &service)
{
	int runs = 0;
	auto t = service.schedule(1s, [&runs, c = counted()] { runs++; });
	CHECK(t.cancel() == tickwheel::outcome::cancelled && counted::alive == 0);
	CHECK(t.cancel() == tickwheel::outcome::gone &&
	      t.cancel_wait() == tickwheel::outcome::gone);
	clock.advance(2s);
	CHECK(runs == 0);
}

void a_persistent_timer_is_armed_and_disarmed_until_its_owner_goes(manual_clock &clock,
								   tickwheel::service &service)
{
	int runs = 0;
	{
		auto t = service.persistent([&runs, c = counted()] { runs++; });
		clock.advance(1h);
		CHECK(runs == 0 && !t.is_pending());
		for (int i = 1; i <= 3; i++) {
			CHECK(t.reset(1s) && t.is_pending());
			CHECK(t.disarm() == tickwheel::outcome::cancelled && !t.is_pending());
			CHECK(t.disarm() == tickwheel::outcome::disarmed && t.reset(2s));
			clock.advance(3s);
			CHECK(runs == i && counted::alive == 1);
		}
	}
	CHECK(counted::alive == 0);
	tickwheel::timer none;
	CHECK(none.disarm() == tickwheel::outcome::gone);
}

void an_owner_that_goes_cancels_and_one_that_detaches_does_not(manual_clock &clock,
							       tickwheel::service &service)
{
	int runs = 0;
	{
		auto owned = service.schedule(1s, [&] { runs += 1; });
		auto other = service.schedule(1s, [&] { runs += 10; });
		CHECK(other.detach().id != 0 && other.handle().id == 0);
	}
	clock.advance(2s);
	CHECK(runs == 10);
}

void a_timer_moves_with_its_owner_and_what_is_overwritten_is_cancelled(manual_clock &clock,
								       tickwheel::service &service)
{
	int runs = 0;
	tickwheel::timer t;
	CHECK(!t.is_pending() && t.cancel() == tickwheel::outcome::gone);
	CHECK(!t.reset(1s) && !t.reset_at(service.now() + 1s));
	t = service.schedule(1s, [&] { runs += 1; });
	tickwheel::timer moved = std::move(t);
	CHECK(moved.is_pending() && t.handle().id == 0);
	moved = service.schedule(1s, [&] { runs += 10; });
	clock.advance(2s);
	CHECK(runs == 10);
}

void reset_moves_it_and_says_when_it_is_too_late(manual_clock &clock, tickwheel::service &service)
{
	int runs = 0;
	auto t = service.schedule(10ms, [&] { runs++; });
	CHECK(t.reset(1s));
	clock.advance(500ms);
	CHECK(runs == 0 && t.reset_at(service.now() + 20ms));
	clock.advance(22ms);
	CHECK(runs == 1 && !t.reset(1s));
}

void reset_earlier_moves_it_to_earlier_only(manual_clock &clock, tickwheel::service &service)
{
	int runs = 0;
	auto t = service.schedule(100ms, [&] { runs++; });
	CHECK(!t.reset_earlier(1s) && t.reset_earlier(50ms));
	CHECK(!t.reset_earlier(60ms) && t.reset_earlier(20ms));
	clock.advance(22ms);
	CHECK(runs == 1 && !t.reset_earlier(0s));
}

void durations_are_rounded_up_and_negative_ones_are_due_at_once()
{
	using tickwheel::detail::delay_ns;
	using picoseconds = std::chrono::duration<long, std::pico>;
	CHECK(delay_ns(picoseconds(1)) == 1 && delay_ns(picoseconds(1001)) == 2);
	CHECK(delay_ns(std::chrono::duration<double>(0.5)) == 500000000);
	CHECK(delay_ns(-1h) == 0 && delay_ns(24h) == 86400 * TW_SECOND);
	CHECK(delay_ns(std::chrono::hours::max()) == UINT64_MAX);
	CHECK(tickwheel::detail::timeout_ns(tickwheel::forever) == TW_FOREVER);
}

struct connection {
	int timeouts = 0;
	void on_timeout()
	{
		timeouts++;
	}
};

void a_method_runs_without_anything_stored(manual_clock &clock, tickwheel::service &service)
{
	connection c;
	auto t = service.schedule<&connection::on_timeout>(1ms, c);
	clock.advance(3ms);
	CHECK(c.timeouts == 1);
}

void a_series_runs_until_its_owner_goes(manual_clock &clock, tickwheel::service &service)
{
	int runs = 0;
	{
		auto t = service.every(10ms, [&runs, c = counted()] { runs++; });
		clock.advance(35ms);
		CHECK(runs == 3 && counted::alive == 1);
	}
	CHECK(counted::alive == 0);
	clock.advance(1s);
	CHECK(runs == 3);
}

void a_task_with_options_is_taken(manual_clock &, tickwheel::service &service)
{
	tw_group group;
	CHECK(tw_group_create(&group, service.get()) == 0);
	tw_task task = {};
	task.when_ns = TW_SECOND;
	task.group = group;
	auto t = service.schedule(task, [c = counted()] {});
	CHECK(tw_group_cancel_wait(service.get(), group, TW_FOREVER) == TW_CANCELLED &&
	      counted::alive == 0);
	CHECK(t.cancel() == tickwheel::outcome::gone);
}

void errors_are_thrown_or_told(manual_clock &clock, tickwheel::service &service)
{
	std::error_code error;
	CHECK(thrown([&] {
		      auto t = service.schedule(std::chrono::hours::max(), [c = counted()] {});
	      }) == ERANGE);
	auto t = service.schedule(
	    std::chrono::hours::max(), [c = counted()] {}, error);
	CHECK(error == std::errc::result_out_of_range && counted::alive == 0 && t.handle().id == 0);
	CHECK(thrown([&] { auto u = service.every(0ms, [] {}); }) == EINVAL);

	tw_service_config bad = clock.config();
	bad.tick_ns = 1;
	CHECK(thrown([&] { tickwheel::service s(bad); }) == EINVAL);
	tickwheel::service empty(bad, error);
	CHECK(error == std::errc::invalid_argument && empty.get() == nullptr);
	CHECK(thrown([&] { auto u = empty.schedule(1s, [] {}); }) == EINVAL);

	auto pending = service.schedule(1s, [] {});
	service.close(TW_CLOSE_DROP, 1s);
	CHECK(thrown([&] { auto u = service.schedule(1s, [] {}); }) == ESHUTDOWN);
	connection c;
	CHECK(thrown([&] { auto u = service.schedule<&connection::on_timeout>(1s, c); }) ==
	      ESHUTDOWN);
	CHECK(thrown([&] { pending.reset(1s); }) == ESHUTDOWN);
}

void a_service_that_goes_destroys_what_was_pending()
{
	manual_clock clock;
	{
		tickwheel::service service(clock.config());
		service.schedule(1s, [c = counted()] {}).detach();
		tickwheel::service other = std::move(service);
		CHECK(service.get() == nullptr && other.get() != nullptr && counted::alive == 1);
	}
	CHECK(counted::alive == 0);
}

/* With threads: an owner that goes waits for the callback, so what it refers to may go next. */
void an_owner_waits_for_a_callback_that_runs()
{
	tickwheel::service service;
	std::atomic<bool> begun{false}, ended{false};
	{
		auto t = service.schedule(0ms, [&] {
			begun = true;
			std::this_thread::yield();
			ended = true;
		});
		while (!begun)
			std::this_thread::yield();
	}
	CHECK(ended);
}

void a_callback_may_destroy_its_own_owner(manual_clock &clock, tickwheel::service &service)
{
	auto owner = std::make_unique<tickwheel::timer>();
	*owner = service.schedule(1ms, [&owner] { owner.reset(); });
	clock.advance(3ms);
	CHECK(!owner);
}

} // namespace

int main()
{
	run_tests("cpp", {
			     an_instant_of_another_clock_does_not_compile,
			     a_callable_runs_when_its_time_has_come_and_is_destroyed_after_it,
			     a_move_only_callable_is_taken,
			     cancel_keeps_it_from_running_and_destroys_the_callable,
			     a_persistent_timer_is_armed_and_disarmed_until_its_owner_goes,
			     an_owner_that_goes_cancels_and_one_that_detaches_does_not,
			     a_timer_moves_with_its_owner_and_what_is_overwritten_is_cancelled,
			     reset_moves_it_and_says_when_it_is_too_late,
			     reset_earlier_moves_it_to_earlier_only,
			     durations_are_rounded_up_and_negative_ones_are_due_at_once,
			     a_method_runs_without_anything_stored,
			     a_series_runs_until_its_owner_goes,
			     a_task_with_options_is_taken,
			     errors_are_thrown_or_told,
			     a_service_that_goes_destroys_what_was_pending,
			     an_owner_waits_for_a_callback_that_runs,
			     a_callback_may_destroy_its_own_owner,
			 });
}
