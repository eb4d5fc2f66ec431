/*
 * Groups, strands, limiters, schedulers and stop tokens as objects. Also built without exceptions.
 */
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support.hpp"

namespace
{

void a_group_that_goes_cancels_its_members(manual_clock &clock, tickwheel::service &service)
{
	int runs = 0;
	{
		tickwheel::group group(service);
		group.schedule(1ms, [&] { runs += 1; });
		group.schedule(1s, [&runs, c = counted()] { runs += 100; });
		clock.advance(2ms);
		CHECK(runs == 1 && counted::alive == 1);
	}
	CHECK(counted::alive == 0);
	clock.advance(2s);
	CHECK(runs == 1);
}

void a_group_cancels_closes_and_completes(manual_clock &clock, tickwheel::service &service)
{
	tickwheel::group group(service);
	int runs = 0, ends = 0;
	group.schedule(1s, [&] { runs++; });
	group.cancel();
	group.schedule(1s, [&] { runs += 10; });
	clock.advance(2s);
	CHECK(runs == 10);
	group.schedule(1s, [&] { runs += 100; });
	CHECK(group.cancel_wait(1s) == tickwheel::outcome::cancelled);
	group.close_then([&ends, c = counted()] { ends++; });
	CHECK(ends == 0 && counted::alive == 1);
	REFUSED(EALREADY, group.close_then([c = counted()] {}, refusal));
	REFUSED(ESHUTDOWN, group.schedule(
			       1s, [c = counted()] {}, refusal));
	clock.advance(2ms);
	CHECK(ends == 1 && counted::alive == 0);
	tickwheel::group moved(std::move(group)), empty;
	CHECK(moved.handle().id != 0 && group.handle().id == 0);
	empty = std::move(moved);
	CHECK(empty.handle().id != 0);
}

/* Its timers would have no owner. */
void an_object_without_a_group_schedules_nothing()
{
	manual_clock clock;
	tw_service_config config = clock.config();
	config.max_timers = 1000;
	tickwheel::service service(config);
	std::vector<tickwheel::group> all;
	std::error_code error;
	do
		all.emplace_back(service, error);
	while (!error);
	tickwheel::group to(std::move(all.front()));
	tw_group detached = to.detach();
	for (tickwheel::group *without : {&all.back(), &all.front(), &to})
		REFUSED(EINVAL, without->schedule(
				    1ms, [c = counted()] { CHECK(false); }, refusal));
	CHECK(tw_group_destroy(service.get(), detached) == 0);
	clock.advance(2ms);
}

/* The idle timeout that closes its own connection, which owns the group. */
struct connection {
	tickwheel::group timers;
	int *ended;
	connection(tickwheel::service &service, int *e) : timers(service), ended(e)
	{
		timers.schedule(10ms, [this] { timers.close_then([this] { delete this; }); });
		timers.schedule(1s, [] { CHECK(false); });
	}
	~connection()
	{
		++*ended;
	}
};

void a_completion_may_destroy_its_group(manual_clock &clock, tickwheel::service &service)
{
	int ended = 0;
	new connection(service, &ended);
	clock.advance(20ms);
	CHECK(ended == 1);
}

void a_strand_runs_in_order_and_never_inside_the_call(manual_clock &clock,
						      tickwheel::service &service)
{
	tickwheel::strand strand(service);
	std::string order;
	strand.submit([&, c = counted()] {
		order += 'a';
		strand.submit([&] { order += 'c'; });
		order += 'b';
	});
	CHECK(order.empty());
	clock.advance(1ms);
	CHECK(order == "abc" && counted::alive == 0);
	strand.schedule(5ms, [&] { order += 'e'; });
	auto cancelled = strand.schedule(5ms, [&, c = counted()] { order += '!'; });
	strand.submit([&] { order += 'd'; });
	CHECK(strand.cancel(cancelled) == tickwheel::outcome::cancelled && counted::alive == 0);
	CHECK(strand.cancel(cancelled) == tickwheel::outcome::gone);
	CHECK(strand.cancel_wait(cancelled) == tickwheel::outcome::gone);
	clock.advance(10ms);
	CHECK(order == "abcde");
	auto series = strand.every(10ms, [&] { order += '.'; });
	clock.advance(35ms);
	CHECK(order == "abcde...");
	CHECK(strand.cancel(series) == tickwheel::outcome::cancelled);
}

void a_strand_that_goes_cancels_its_tasks(manual_clock &clock, tickwheel::service &service)
{
	std::error_code error;
	{
		tickwheel::strand strand(service, nullptr, error);
		CHECK(!error);
		strand.schedule(1s, [c = counted()] { CHECK(false); });
		strand.submit([c = counted()] { CHECK(false); });
		CHECK(counted::alive == 2);
		strand.close();
		CHECK(counted::alive == 0);
		REFUSED(ESHUTDOWN, strand.submit([c = counted()] {}, refusal));
	}
	clock.advance(2s);
}

void a_strand_on_a_pool_that_goes_waits_for_its_task()
{
	tickwheel::service service;
	for (int i = 0; i < 200; i++) {
		std::atomic<int> inside{0};
		int written = 0;
		tickwheel::strand strand(service);
		strand.submit([&] {
			inside = 1;
			std::this_thread::yield();
			written = 1;
			inside = 2;
		});
		if (i % 2)
			while (inside == 0)
				std::this_thread::yield();
		strand = tickwheel::strand();
		CHECK(inside != 1 && written == (inside == 2));
	}
}

void a_limiter_runs_jobs_and_retries()
{
	tickwheel::service service;
	tickwheel::limiter limiter(service, 2);
	std::atomic<int> running{0}, most{0}, attempts{0}, done{0};
	for (int i = 0; i < 20; i++)
		limiter.submit([&, c = std::make_unique<int>(i)] {
			int now = ++running, seen = most;
			while (now > seen && !most.compare_exchange_weak(seen, now))
				;
			std::this_thread::yield();
			done += *c >= 0;
			running--;
		});
	tw_limiter_task task = {};
	task.retry.count = 3;
	limiter.submit(task, [&](tw_job_run &run) {
		attempts++;
		return run.attempt < 3 ? -EIO : 0;
	});
	CHECK(limiter.wait_idle(tickwheel::forever));
	CHECK(done == 20 && most <= 2 && attempts == 3);
	limiter.set_max_concurrency(1);
	limiter.pause();
	auto waiting = limiter.submit([] { CHECK(false); });
	CHECK(!limiter.wait_idle(1ms));
	CHECK(limiter.cancel(waiting) == tickwheel::outcome::cancelled);
	limiter.resume();
	limiter.close(TW_CLOSE_DROP, tickwheel::forever);
	REFUSED(ESHUTDOWN, limiter.submit([] {}, refusal));
}

void a_limiter_that_goes_drops_what_waits_and_waits_for_what_runs()
{
	tickwheel::service service;
	std::atomic<int> begun{0}, ended{0};
	{
		tickwheel::limiter limiter(service, 1);
		limiter.submit([&, c = counted()] {
			begun = 1;
			std::this_thread::sleep_for(5ms);
			ended = 1;
		});
		while (begun == 0)
			std::this_thread::yield();
		limiter.submit([c = counted()] { CHECK(false); });
	}
	CHECK(ended == 1 && counted::alive == 0);
	std::error_code error;
	tickwheel::limiter none(service, tw_limiter_config{}, error);
	CHECK(error.value() == EINVAL && !none.get());
}

void a_scheduler_runs_by_priority(manual_clock &, tickwheel::service &service)
{
	tw_scheduler_config config = {};
	config.host = TW_HOST_MANUAL;
	std::string order;
	{
		tickwheel::scheduler scheduler(service, config);
		scheduler.submit(TW_PRIORITY_LOW, [&, c = counted()] { order += 'l'; });
		scheduler.submit(TW_PRIORITY_USER_BLOCKING, [&, turns = 0](tw_turn &turn) mutable {
			CHECK(turn.scheduler == scheduler.get() && !scheduler.should_yield());
			CHECK(tw_priority_current() == TW_PRIORITY_USER_BLOCKING);
			order += 'u';
			return ++turns < 3 ? TW_TURN_AGAIN : TW_TURN_DONE;
		});
		auto never =
		    scheduler.schedule(1s, TW_PRIORITY_NORMAL, [c = counted()] { CHECK(false); });
		CHECK(counted::alive == 2);
		while (scheduler.run())
			;
		CHECK(order == "uuul" && counted::alive == 1);
		CHECK(tw_priority_current() == TW_PRIORITY_NORMAL);
		CHECK(scheduler.cancel(never) == tickwheel::outcome::cancelled &&
		      counted::alive == 0);
		scheduler.submit(TW_PRIORITY_NORMAL, [c = counted()] { CHECK(false); });
		scheduler.close(0s);
		CHECK(counted::alive == 0);
	}
}

#if defined(__cpp_lib_jthread)
void a_stop_request_cancels_a_timer(manual_clock &clock, tickwheel::service &service)
{
	std::stop_source stop;
	int runs = 0;
	auto cancelled = service.schedule(
	    10ms, [&runs, c = counted()] { runs += 1; }, stop.get_token());
	auto other = service.schedule(
	    10ms, [&runs, c = counted()] { runs += 10; }, std::stop_token());
	CHECK(counted::alive == 2);
	stop.request_stop();
	CHECK(counted::alive == 1 && !cancelled.is_pending());
	clock.advance(20ms);
	CHECK(runs == 10 && counted::alive == 0);
	auto too_late = service.schedule(
	    10ms, [&runs, c = counted()] { runs++; }, stop.get_token());
	CHECK(counted::alive == 0 && !too_late.is_pending());
	std::stop_source unused;
	REFUSED(ERANGE, auto never = service.schedule(
			    500 * 365 * 24h, [c = counted()] {}, unused.get_token(), refusal));
	unused.request_stop();
}

/* The timer may run before the call that schedules it has registered for the request. */
void a_stop_request_keeps_a_timer_from_running_before_its_call_returns(manual_clock &,
								       tickwheel::service &)
{
	std::stop_source stop;
	int runs = 0;
	auto f = [&runs, c = counted()] { runs++; };
	using stored = tickwheel::detail::stoppable<decltype(f)>;
	auto *timer = new stored(f, stop.get_token());
	stored::run(timer);
	stop.request_stop();
	stored::run(timer);
	CHECK(runs == 1 && counted::alive == 2);
	stored::release(timer, TW_FATE_FIRED);
	CHECK(counted::alive == 2); /* the call owns it, too */
	stored::release(timer, TW_FATE_FIRED);
	CHECK(counted::alive == 1);
}

/* The request comes while the timer is being scheduled, before, or while it runs. */
void a_stop_request_races_with_its_timer()
{
	tickwheel::service service;
	std::atomic<int> runs{0};
	for (int i = 0; i < 500; i++) {
		std::stop_source stop;
		std::thread stopper([&] { stop.request_stop(); });
		auto timer = service.schedule(
		    std::chrono::microseconds(i % 3 * 500), [&] { runs++; }, stop.get_token());
		stopper.join();
		timer.cancel_wait();
	}
	CHECK(runs <= 500);
}
#endif

} // namespace

int main()
{
	run_tests("objects", {
		a_group_that_goes_cancels_its_members, a_group_cancels_closes_and_completes,
		    an_object_without_a_group_schedules_nothing, a_completion_may_destroy_its_group,
		    a_strand_runs_in_order_and_never_inside_the_call,
		    a_strand_that_goes_cancels_its_tasks,
		    a_strand_on_a_pool_that_goes_waits_for_its_task,
		    a_limiter_runs_jobs_and_retries,
		    a_limiter_that_goes_drops_what_waits_and_waits_for_what_runs,
		    a_scheduler_runs_by_priority,
#if defined(__cpp_lib_jthread)
		    a_stop_request_cancels_a_timer,
		    a_stop_request_keeps_a_timer_from_running_before_its_call_returns,
		    a_stop_request_races_with_its_timer,
#endif
	});
}
