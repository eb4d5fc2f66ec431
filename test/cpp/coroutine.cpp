/*
 * Coroutines that wait: their ends, on which thread they go on, that nothing is touched once they
 * are gone, and that nothing is allocated but their frames. Needs C++20.
 */
#include "coroutine.hpp"

#if defined(__cpp_impl_coroutine)

#include <atomic>
#include <cerrno>
#include <new>
#include <optional>
#include <string>
#include <thread>

namespace
{

std::atomic<long> allocations;

}

/* The library's own calls come here too: the program is linked with --wrap. */
extern "C" {
void *__real_malloc(std::size_t size);
void *__wrap_malloc(std::size_t size);
void *__real_calloc(std::size_t n, std::size_t size);
void *__wrap_calloc(std::size_t n, std::size_t size);

void *__wrap_malloc(std::size_t size)
{
	allocations++;
	return __real_malloc(size);
}
void *__wrap_calloc(std::size_t n, std::size_t size)
{
	allocations++;
	return __real_calloc(n, size);
}
}

/* Not inline: the compiler would see malloc meet delete. */
__attribute__((noinline)) void *operator new(std::size_t size)
{
	void *p = __wrap_malloc(size);
	if (!p)
		std::abort();
	return p;
}
__attribute__((noinline)) void operator delete(void *p) noexcept
{
	std::free(p);
}
__attribute__((noinline)) void operator delete(void *p, std::size_t) noexcept
{
	std::free(p);
}

namespace
{

detached wait_once(tickwheel::after_awaitable awaited, std::string &told)
{
	told += co_await std::move(awaited) ? 't' : 'f';
}

void it_goes_on_when_the_time_has_passed(manual_clock &clock, tickwheel::service &service)
{
	std::string told;
	wait_once(service.after(5ms), told);
	wait_once(service.until(service.now() + 8ms), told);
	clock.advance(4ms);
	CHECK(told.empty() && pending(service) == 2);
	clock.advance(2ms);
	CHECK(told == "t");
	clock.advance(3ms);
	CHECK(told == "tt" && pending(service) == 0);
	wait_once(service.after(0s), told);
	CHECK(told == "tt");
	clock.advance(1ms);
	CHECK(told == "ttt");
}

detached beat(tickwheel::service &service, int &beats, bool &ended)
{
	counted c;
	while (co_await service.after(10ms))
		beats++;
	ended = true;
}

void a_close_ends_the_wait()
{
	manual_clock clock;
	int beats = 0;
	bool ended = false;
	{
		tickwheel::service service(clock.config());
		beat(service, beats, ended);
		clock.advance(35ms);
		CHECK(beats == 3 && !ended);
	}
	CHECK(beats == 3 && ended && counted::alive == 0);
}

void a_stop_request_ends_the_wait(manual_clock &clock, tickwheel::service &service)
{
	std::stop_source stop;
	std::string told;
	wait_once(service.after(10ms, stop.get_token()), told);
	wait_once(service.after(1ms).stop_when(stop.get_token()), told);
	clock.advance(2ms);
	CHECK(told == "t");
	stop.request_stop();
	CHECK(told == "tf" && pending(service) == 0);
	wait_once(service.after(10ms, stop.get_token()), told);
	CHECK(told == "tff" && pending(service) == 0);
}

void a_cancel_before_the_wait_moves_with_it(manual_clock &, tickwheel::service &service)
{
	std::string told;
	auto awaited = service.after(1ms);
	awaited.cancel();
	wait_once(std::move(awaited), told);
	CHECK(told == "f" && pending(service) == 0);
}

detached too_long(tickwheel::service &service, int &code)
{
	try {
		co_await service.after(500 * 365 * 24h);
	} catch (const std::system_error &error) {
		code = error.code().value();
	}
}

void an_error_throws(manual_clock &, tickwheel::service &service)
{
	int code = 0;
	too_long(service, code);
	CHECK(code == ERANGE && pending(service) == 0);
}

detached wait_in_strand(tickwheel::service &service, tickwheel::strand &strand, tw_strand *&seen)
{
	co_await service.after(1ms).on(strand.executor());
	seen = tw_strand_current();
}

void it_goes_on_where_it_is_told_to(manual_clock &clock, tickwheel::service &service)
{
	tickwheel::strand strand(service);
	tw_strand *seen = nullptr;
	wait_in_strand(service, strand, seen);
	clock.advance(3ms);
	CHECK(seen == strand.get());
}

owned wait_owned(tickwheel::after_awaitable awaited, int &passed)
{
	counted c;
	passed += co_await std::move(awaited);
	passed += 100;
	co_await std::suspend_always();
}

void a_coroutine_that_goes_while_its_timer_waits_cancels_it(manual_clock &clock,
							    tickwheel::service &service)
{
	int passed = 0;
	std::stop_source stop;
	{
		owned plain = wait_owned(service.after(10ms), passed);
		owned stoppable = wait_owned(service.after(10ms, stop.get_token()), passed);
		CHECK(pending(service) == 2 && counted::alive == 2);
	}
	CHECK(pending(service) == 0 && counted::alive == 0);
	stop.request_stop();
	clock.advance(20ms);
	CHECK(passed == 0);
}

/* Its run is with the executor already. */
void a_coroutine_that_goes_while_its_run_waits_for_a_thread()
{
	manual_clock clock;
	tw_manual *queue = nullptr;
	CHECK(tw_manual_create(&queue, nullptr) == 0);
	{
		tw_service_config config = clock.config();
		config.executor = tw_manual_executor(queue);
		tickwheel::service service(config);
		int passed = 0;
		owned gone = wait_owned(service.after(1ms), passed);
		owned stays = wait_owned(service.after(1ms), passed);
		clock.advance(3ms);
		gone.destroy();
		while (tw_manual_pump(queue, TW_NO_LIMIT) > 0)
			;
		CHECK(passed == 101);
	}
	CHECK(tw_manual_destroy(queue) == 0);
}

/* Timer and destruction in one strand, on real threads: whichever comes first. */
void a_coroutine_that_goes_races_with_its_timer()
{
	tickwheel::service service;
	tickwheel::strand strand(service);
	for (int i = 0; i < 1000; i++) {
		int passed = 0;
		std::atomic<bool> gone{false};
		std::optional<owned> waits;
		strand.submit([&] {
			waits.emplace(
			    wait_owned(service.after(std::chrono::microseconds(i % 4 * 300))
					   .on(strand.executor()),
				       passed));
		});
		if (i % 2)
			std::this_thread::sleep_for(std::chrono::microseconds(i % 7 * 200));
		strand.submit([&] {
			waits.reset();
			gone = true;
		});
		while (!gone)
			std::this_thread::yield();
		CHECK(passed == 0 || passed == 101);
	}
}

/*
 * Destroys the awaitable as soon as the coroutine goes on, while the timer's release is under way.
 */
struct destroys_it {
	std::optional<tickwheel::after_awaitable> &awaited;
	bool await_ready()
	{
		return awaited->await_ready();
	}
	bool await_suspend(std::coroutine_handle<> waiting)
	{
		return awaited->await_suspend(waiting);
	}
	bool await_resume()
	{
		bool passed = awaited->await_resume();
		awaited.reset();
		return passed;
	}
};

detached wait_and_destroy(std::optional<tickwheel::after_awaitable> awaited, std::string &told)
{
	told += co_await destroys_it{awaited} ? 't' : 'f';
	CHECK(!awaited);
}

std::optional<tickwheel::after_awaitable> held(tickwheel::after_awaitable awaited)
{
	return std::optional<tickwheel::after_awaitable>(std::move(awaited));
}

void an_awaitable_may_go_in_its_own_resumption()
{
	manual_clock clock;
	std::string told;
	std::stop_source stop, before;
	before.request_stop();
	{
		tickwheel::service service(clock.config());
		wait_and_destroy(held(service.after(1ms)), told);
		clock.advance(3ms);
		CHECK(told == "t");
		wait_and_destroy(held(service.after(1s, stop.get_token())), told);
		stop.request_stop(); /* in the stop callback that it owns */
		CHECK(told == "tf");
		wait_and_destroy(held(service.after(1s, before.get_token())), told);
		CHECK(told == "tff");
		wait_and_destroy(held(service.after(1s)), told);
	}
	CHECK(told == "tfff"); /* by the close */
}

detached wait_without_allocating(tickwheel::service &service, int &rounds)
{
	for (; rounds < 200; rounds++) {
		long before = allocations;
		co_await service.after(1ms);
		auto in_time = co_await with_timeout(service.after(1ms), 1s);
		auto late = co_await with_timeout(service.after(1s), 1ms);
		CHECK(in_time && *in_time && !late);
		CHECK(rounds == 0 || allocations == before); /* the service grows at first */
	}
}

void nothing_is_allocated_but_the_frame(manual_clock &clock, tickwheel::service &service)
{
	int rounds = 0;
	long before = allocations;
	CHECK(before > 0);
	wait_without_allocating(service, rounds);
	while (rounds < 200)
		clock.advance(1ms);
}

} // namespace

int main()
{
	run_tests("coroutine", {
				   it_goes_on_when_the_time_has_passed,
				   a_close_ends_the_wait,
				   a_stop_request_ends_the_wait,
				   a_cancel_before_the_wait_moves_with_it,
				   an_error_throws,
				   it_goes_on_where_it_is_told_to,
				   a_coroutine_that_goes_while_its_timer_waits_cancels_it,
				   a_coroutine_that_goes_while_its_run_waits_for_a_thread,
				   a_coroutine_that_goes_races_with_its_timer,
				   an_awaitable_may_go_in_its_own_resumption,
				   nothing_is_allocated_but_the_frame,
			       });
}

#else

int main()
{
	std::puts("coroutine: left out: this compiler has no coroutines");
	return 0;
}

#endif
