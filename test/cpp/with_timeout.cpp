/*
 * Coroutines with a time limit: how a wait ends that takes too long, and that nothing is touched
 * once it is gone. Needs C++20.
 */
#include "coroutine.hpp"

#if defined(__cpp_impl_coroutine)

#include <atomic>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace
{

/* An awaitable that is a coroutine: what users have as a task. */
class task
{
      public:
	struct promise_type {
		task get_return_object()
		{
			return task(std::coroutine_handle<promise_type>::from_promise(*this));
		}
		std::suspend_always initial_suspend() noexcept
		{
			return {};
		}
		auto final_suspend() noexcept
		{
			struct back {
				bool await_ready() noexcept
				{
					return false;
				}
				auto await_suspend(std::coroutine_handle<promise_type> h) noexcept
				{
					return h.promise().waiting;
				}
				void await_resume() noexcept
				{
				}
			};
			return back{};
		}
		void return_value(int v)
		{
			value = v;
		}
		void unhandled_exception()
		{
			std::terminate();
		}
		std::coroutine_handle<> waiting;
		int value = 0;
	};
	explicit task(std::coroutine_handle<promise_type> handle) : handle_(handle)
	{
	}
	task(task &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
	{
	}
	~task()
	{
		if (handle_)
			handle_.destroy();
	}
	auto operator co_await() &&
	{
		struct awaiter {
			std::coroutine_handle<promise_type> handle;
			bool await_ready()
			{
				return false;
			}
			auto await_suspend(std::coroutine_handle<> waiting)
			{
				handle.promise().waiting = waiting;
				return handle;
			}
			int await_resume()
			{
				return handle.promise().value;
			}
		};
		return awaiter{handle_};
	}

      private:
	std::coroutine_handle<promise_type> handle_;
};

task slow_answer(tickwheel::service &service, std::chrono::milliseconds time, std::stop_token stop)
{
	counted c;
	bool passed = co_await service.after(time, std::move(stop));
	co_return passed ? 42 : -1;
}

detached ask(tickwheel::service &service, std::chrono::milliseconds time, std::string &told)
{
	std::optional<int> answer = co_await with_timeout(
	    service, [&](std::stop_token stop) { return slow_answer(service, time, stop); }, 10ms);
	told += answer ? std::to_string(*answer) : "-";
}

detached ask_limited(tickwheel::service &limits, tickwheel::service &service, std::string &told)
{
	std::optional<int> answer = co_await with_timeout(
	    limits, [&](std::stop_token stop) { return slow_answer(service, 5ms, stop); }, 10ms);
	told += answer ? std::to_string(*answer) : "-";
}

/* The lambda is a coroutine: its captures are part of the lambda, not of the frame. */
detached ask_with_captures(tickwheel::service &service, std::string &told)
{
	std::string name = "long enough to be stored on the heap";
	auto slow_length = [&service, name, c = counted()](std::stop_token stop) -> task {
		co_await service.after(5ms, std::move(stop));
		co_return static_cast<int>(name.size());
	};
	std::optional<int> length = co_await with_timeout(service, std::move(slow_length), 10ms);
	CHECK(length && *length == static_cast<int>(name.size()));
	told += '.';
}

struct of_void {
	tickwheel::after_awaitable inner;
	bool await_ready()
	{
		return false;
	}
	bool await_suspend(std::coroutine_handle<> waiting)
	{
		return inner.await_suspend(waiting);
	}
	void await_resume()
	{
		inner.await_resume();
	}
};

detached ask_void(tickwheel::service &service, std::chrono::milliseconds time, std::string &told)
{
	bool in_time = co_await with_timeout(
	    service, [&](std::stop_token stop) { return of_void{service.after(time, stop)}; },
	    10ms);
	told += in_time ? 't' : 'f';
}

detached ask_after(tickwheel::service &service, std::chrono::milliseconds time, std::string &told)
{
	std::optional<bool> passed = co_await with_timeout(service.after(time), 10ms);
	told += !passed ? '-' : *passed ? 't' : 'f';
}

void with_timeout_ends_what_takes_too_long(manual_clock &clock, tickwheel::service &service)
{
	std::string told;
	ask(service, 5ms, told);
	clock.advance(7ms);
	CHECK(told == "42" && pending(service) == 0 && counted::alive == 0);
	ask(service, 1000ms, told);
	clock.advance(9ms);
	CHECK(told == "42");
	clock.advance(3ms);
	CHECK(told == "42-" && pending(service) == 0 && counted::alive == 0);
	told.clear();
	ask_void(service, 5ms, told);
	ask_void(service, 50ms, told);
	clock.advance(12ms);
	CHECK(told == "tf" && pending(service) == 0);
	told.clear();
	ask_after(service, 5ms, told);
	ask_after(service, 50ms, told);
	clock.advance(12ms);
	CHECK(told == "t-" && pending(service) == 0);
}

detached ask_until(tickwheel::service &service, tickwheel::strand &strand,
		   std::chrono::milliseconds time, std::string &told)
{
	auto wait = service.until(service.now() + time).on(strand.executor());
	std::optional<bool> passed = co_await with_timeout(std::move(wait), 10ms);
	told += tw_strand_current() != strand.get() ? '?' : !passed ? '-' : *passed ? 't' : 'f';
}

void a_limit_of_a_wait_counts_from_the_call_and_keeps_its_executor(manual_clock &clock,
								   tickwheel::service &service)
{
	tickwheel::strand strand(service);
	std::string told;
	for (auto time : {-5ms, 5ms, 15ms})
		ask_until(service, strand, time, told);
	clock.advance(8ms);
	CHECK(told == "tt");
	clock.advance(4ms);
	CHECK(told == "tt-" && pending(service) == 0);
}

void with_timeout_keeps_the_function_while_its_coroutine_runs(manual_clock &clock,
							      tickwheel::service &service)
{
	std::string told;
	ask_with_captures(service, told);
	clock.advance(7ms);
	CHECK(told == "." && counted::alive == 0);
}

void with_timeout_and_a_close()
{
	manual_clock clock;
	std::string told;
	{
		tickwheel::service service(clock.config());
		ask_after(service, 5ms, told);
		ask(service, 5ms, told);
	}
	CHECK((told == "f-1" || told == "-1f") && counted::alive == 0);
}

void with_timeout_on_a_closed_service_is_over_immediately()
{
	manual_clock clock;
	tickwheel::service closed(clock.config()), service(clock.config());
	closed.close(TW_CLOSE_DROP, 0s);
	std::string told;
	ask_after(closed, 5ms, told);
	ask(closed, 5ms, told);
	ask_void(closed, 5ms, told);
	CHECK(told == "f-1t" && counted::alive == 0);
	ask_limited(closed, service, told);
	CHECK(told == "f-1t-1" && pending(service) == 0 && counted::alive == 0);
}

/* What is awaited does not end with the service that limits it. */
void a_close_of_the_service_that_limits_requests_a_stop()
{
	manual_clock clock;
	tickwheel::service limits(clock.config()), service(clock.config());
	std::string told;
	ask_limited(limits, service, told);
	CHECK(told.empty() && pending(service) == 1);
	limits.close(TW_CLOSE_DROP, 0s);
	CHECK(told == "-1" && pending(service) == 0 && counted::alive == 0);
}

owned ask_owned(tickwheel::service &service)
{
	counted c;
	co_await with_timeout(service.after(1s), 2s);
	CHECK(false);
}

void with_timeout_that_goes_while_it_waits(manual_clock &clock, tickwheel::service &service)
{
	{
		owned waits = ask_owned(service);
		CHECK(pending(service) == 1 && counted::alive == 1);
	}
	CHECK(pending(service) == 0 && counted::alive == 0);
	clock.advance(3s);
}

/* Real threads: the time, the limit and a stop request come within the same milliseconds. */
detached race(tickwheel::service &service, unsigned seed, std::stop_token stop,
	      std::atomic<int> &left)
{
	for (unsigned i = 0; i < 200; i++) {
		auto time = std::chrono::microseconds((seed = seed * 1664525 + 1013904223) >> 22);
		auto limit = std::chrono::microseconds((seed = seed * 1664525 + 1013904223) >> 22);
		if (i % 3 == 0)
			co_await service.after(time, stop);
		else if (i % 3 == 1)
			co_await with_timeout(service.after(time), limit);
		else
			co_await with_timeout(
			    service,
			    [&](std::stop_token s) {
				    return slow_answer(service, std::chrono::milliseconds(1), s);
			    },
			    limit);
	}
	left--;
}

void times_limits_and_stops_race()
{
	tw_service_config config = {};
	config.workers = 4;
	config.tick_ns = 100000;
	tickwheel::service service(config);
	std::stop_source stop;
	std::atomic<int> left{40};
	for (unsigned i = 0; i < 40; i++)
		race(service, i + 1, stop.get_token(), left);
	std::this_thread::sleep_for(20ms);
	stop.request_stop();
	while (left)
		std::this_thread::sleep_for(1ms);
}

} // namespace

int main()
{
	run_tests("with_timeout", {
				      with_timeout_ends_what_takes_too_long,
				      a_limit_of_a_wait_counts_from_the_call_and_keeps_its_executor,
				      with_timeout_keeps_the_function_while_its_coroutine_runs,
				      with_timeout_and_a_close,
				      with_timeout_on_a_closed_service_is_over_immediately,
				      a_close_of_the_service_that_limits_requests_a_stop,
				      with_timeout_that_goes_while_it_waits,
				      times_limits_and_stops_race,
				  });
}

#else

int main()
{
	std::puts("with_timeout: left out: this compiler has no coroutines");
	return 0;
}

#endif
