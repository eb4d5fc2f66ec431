/* A context that goes while a service, which it shares, still hands over what was due in it. */
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

#include "alias.hpp"
#ifndef WITH_STEADY_TIMER
#include "tickwheel.hpp"
#endif

namespace
{

/* asio's own timers share nothing. */
class shared_service
{
      public:
	void use_in(asio::io_context &io)
	{
#ifndef WITH_STEADY_TIMER
		tickwheel::asio::use_service_of(io, service_.get());
#else
		static_cast<void>(io);
#endif
	}

#ifndef WITH_STEADY_TIMER
      private:
	tickwheel::service service_;
#endif
};

std::thread::id main_thread;
std::atomic<int> slow_ends_begun, slow_ends;

/* What is left of it after a move or a copy is slow to go on a thread of the service. */
struct slow_to_go {
	slow_to_go() = default;
	slow_to_go(const slow_to_go &) = default;
	~slow_to_go()
	{
		if (std::this_thread::get_id() == main_thread)
			return;
		slow_ends_begun++;
		std::this_thread::sleep_for(20ms);
		slow_ends++;
	}
};

void a_context_waits_for_what_is_handed_over()
{
	shared_service service;
	std::optional<asio::io_context> io(std::in_place);
	service.use_in(*io);
	auto owned = std::make_shared<timer>(*io, 1ms);
	timer &t = *owned;
	t.async_wait([&, owned = std::move(owned), slow = slow_to_go()](asio::error_code) mutable {
		owned.reset(); /* from here on the context does not know the timer */
		io->stop();
	});
	t.async_wait([](asio::error_code) {});
	io->run();
	io.reset();
	CHECK(slow_ends_begun == slow_ends);
}

/* Copied in place of moved: what is left of it still has a share of its context. */
struct owner {
	std::shared_ptr<asio::io_context> io;
	std::shared_ptr<timer> waits;
	slow_to_go slow; /* goes first */
	owner(const std::shared_ptr<asio::io_context> &i, const std::shared_ptr<timer> &w)
	    : io(i), waits(w)
	{
	}
	owner(const owner &) = default;
	void operator()(asio::error_code)
	{
		io->stop();
	}
};

/* The context does not wait for the call that it goes in. */
void a_context_may_go_inside_of_what_is_handed_over()
{
	std::weak_ptr<asio::io_context> watched;
	shared_service service;
	{
		auto io = std::make_shared<asio::io_context>();
		watched = io;
		service.use_in(*io);
		auto waits = std::make_shared<timer>(*io, 1ms);
		waits->async_wait(owner(io, waits));
		waits.reset();
		io->run();
	}
	while (!watched.expired())
		std::this_thread::yield();
}

/* The thread of the service is not in the child. */
void a_context_of_a_forked_child_waits_for_nothing()
{
	shared_service service;
	std::optional<asio::io_context> io(std::in_place);
	service.use_in(*io);
	std::optional<timer> t(std::in_place, *io, 1ms);
	t->async_wait([&, slow = slow_to_go()](asio::error_code) { io->stop(); });
	io->run();
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		t.reset();
		io.reset();
		_exit(0);
	}
	int status = 1;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	t.reset();
}

std::atomic<bool> move_begun;

/* Its move is slow on a thread of the service: the wait is about to complete meanwhile. */
struct slow_to_move {
	slow_to_move() = default;
	slow_to_move(slow_to_move &&) noexcept
	{
		if (std::this_thread::get_id() == main_thread)
			return;
		move_begun = true;
		std::this_thread::sleep_for(20ms);
	}
};

/* In the child of a shared service the other wait ends with an error. */
void a_fork_while_a_wait_is_about_to_complete()
{
	shared_service service;
	asio::io_context io;
	service.use_in(io);
	int completed = 0;
	timer soon(io, 1ms), far(io, 1h);
	soon.async_wait([&, slow = slow_to_move()](asio::error_code error) {
		CHECK(!error);
		completed++;
		far.cancel();
	});
	far.async_wait([&](asio::error_code error) {
		CHECK(!!error);
		completed++;
	});
#ifndef WITH_STEADY_TIMER
	while (!move_begun)
		std::this_thread::yield();
#endif
	io.notify_fork(asio::io_context::fork_prepare);
	pid_t child = fork();
	CHECK(child >= 0);
	io.notify_fork(child ? asio::io_context::fork_parent : asio::io_context::fork_child);
	alarm(60);
	io.run();
	CHECK(completed == 2);
	if (child == 0)
		_exit(0);
	int status = 1;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* A handler that is destroyed with the context starts a wait, of a timer that it shares. */
struct starts_a_wait {
	std::shared_ptr<timer> waits;
	explicit starts_a_wait(const std::shared_ptr<timer> &w) : waits(w)
	{
	}
	starts_a_wait(starts_a_wait &&) = default;
	~starts_a_wait()
	{
		if (!waits)
			return;
		waits->expires_after(1ms);
		waits->async_wait([w = waits](asio::error_code) {});
	}
	void operator()(asio::error_code)
	{
	}
};

void a_wait_that_starts_while_its_context_goes()
{
	shared_service service;
	std::optional<asio::io_context> io(std::in_place);
	service.use_in(*io);
	auto waits = std::make_shared<timer>(*io, 1h);
	std::weak_ptr<timer> watched(waits);
	waits->async_wait(starts_a_wait(waits));
	waits.reset();
	io.reset();
	CHECK(watched.expired());
}

} // namespace

int main()
{
	main_thread = std::this_thread::get_id();
	a_context_waits_for_what_is_handed_over();
	a_context_may_go_inside_of_what_is_handed_over();
	a_context_of_a_forked_child_waits_for_nothing();
	a_fork_while_a_wait_is_about_to_complete();
	a_wait_that_starts_while_its_context_goes();
	std::puts("shared: ok");
	return 0;
}
