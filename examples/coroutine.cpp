/*
 * Coroutines that wait. One asks a server that is often slow: each try has a time limit, and the
 * waits between tries grow. Another one beats until it is stopped. Both run on the service's
 * threads; the service makes no thread for a coroutine, and a wait allocates nothing.
 */
#include <atomic>
#include <cstdio>
#include <thread>

#include "tickwheel.hpp"

#if defined(__cpp_impl_coroutine)

using namespace std::chrono_literals;

/* A coroutine that nobody waits for. */
struct detached {
	struct promise_type {
		detached get_return_object()
		{
			return {};
		}
		std::suspend_never initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_never final_suspend() noexcept
		{
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			std::terminate();
		}
	};
};

static std::atomic<int> tries, beats, ended;

/* The server takes a minute for each of the first two answers. */
static tickwheel::after_awaitable request(tickwheel::service &service)
{
	return service.after(++tries < 3 ? 60s : 10ms);
}

static detached ask(tickwheel::service &service)
{
	auto pause = 5ms;
	while (!co_await with_timeout(request(service), 30ms)) {
		std::printf("try %d took too long\n", tries.load());
		co_await service.after(pause);
		pause *= 2;
	}
	std::printf("try %d was answered\n", tries.load());
	ended++;
}

static detached beat(tickwheel::service &service, std::stop_token stop)
{
	int count = 0;
	while (co_await service.after(10ms, stop))
		count++;
	beats = count;
	ended++;
}

int main()
{
	tickwheel::service service;
	std::stop_source stop;
	ask(service);
	beat(service, stop.get_token());
	while (ended < 1)
		std::this_thread::sleep_for(1ms);
	stop.request_stop(); /* ends the beat's wait; if the beat is running, its next wait */
	while (ended < 2)
		std::this_thread::sleep_for(1ms);
	std::printf("%d beats\n", beats.load());
	return tries >= 3 && beats > 0 ? 0 : 1;
}

#else

int main()
{
	std::puts("this compiler has no coroutines");
	return 0;
}

#endif
