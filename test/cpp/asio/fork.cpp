/* notify_fork: pending waits go on in both processes, also if due before the child goes on. */
#include <optional>

#include <sys/wait.h>
#include <unistd.h>

#include "alias.hpp"

namespace
{

/* Forks as a daemon does. Returns true in the child. In the parent the child has ended well. */
bool in_child(asio::io_context &io, clock_type::time_point not_before)
{
	io.notify_fork(asio::io_context::fork_prepare);
	while (clock_type::now() < not_before) {
	}
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		io.notify_fork(asio::io_context::fork_child);
		return true;
	}
	io.notify_fork(asio::io_context::fork_parent);
	int status = 1;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	return false;
}

struct counts {
	int expired = 0, aborted = 0;
};

auto count_in(counts &seen)
{
	return [&seen](asio::error_code error) {
		CHECK(!error || error == asio::error::operation_aborted);
		(error ? seen.aborted : seen.expired)++;
	};
}

void use(asio::io_context &io, timer &later)
{
	counts seen;
	timer more(io, 1ms), cancelled(io, 1h);
	more.async_wait(count_in(seen));
	cancelled.async_wait(count_in(seen));
	CHECK(cancelled.cancel() == 1);
	later.wait();
	io.restart();
	io.run();
	CHECK(seen.expired == 1 && seen.aborted == 1);
}

/* A program that becomes a daemon after its first timer: it forks twice. */
void a_daemon_keeps_its_timers()
{
	asio::io_context io;
	counts seen;
	timer first(io, 1ms), later(io, 30ms), idle(io), far(io, 1h);
	first.async_wait(count_in(seen));
	io.run();
	CHECK(seen.expired == 1);
	later.async_wait(count_in(seen));
	far.async_wait(count_in(seen));
	far.cancel();
	bool child = in_child(io, {}), grandchild = child && in_child(io, {});
	use(io, later);
	CHECK(seen.expired == 2 && seen.aborted == 1);
	if (child || grandchild)
		_exit(0);
}

void what_is_due_during_a_fork_expires_in_both()
{
	for (int round = 0; round < 20; round++) {
		asio::io_context io;
		counts seen;
		timer soon(io, 2ms), far(io, 1h);
		soon.async_wait(count_in(seen));
		far.async_wait(count_in(seen));
		bool child = in_child(io, round % 2 ? soon.expiry() + 3ms : clock_type::now());
		soon.wait();
		far.cancel();
		io.run();
		CHECK(seen.expired == 1 && seen.aborted == 1);
		if (child)
			_exit(0);
	}
}

void a_context_that_was_forked_goes_with_its_waits()
{
	std::optional<asio::io_context> io(std::in_place);
	std::optional<timer> far(std::in_place, *io, 1h);
	far->async_wait([](asio::error_code) { CHECK(false); });
	bool child = in_child(*io, {});
	far.reset();
	io.reset();
	if (child)
		_exit(0);
}

} // namespace

int main()
{
	a_daemon_keeps_its_timers();
	what_is_due_during_a_fork_expires_in_both();
	a_context_that_was_forked_goes_with_its_waits();
	std::puts("fork: ok");
	return 0;
}
