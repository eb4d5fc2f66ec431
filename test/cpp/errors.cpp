/*
 * Errors of the objects: the forms of their calls that do not throw. Also built without exceptions.
 */
#include <cerrno>
#include <string>

#include "support.hpp"

namespace
{

void errors_are_told()
{
	manual_clock clock;
	std::error_code error;
	tickwheel::service service(clock.config());
	CHECK(!service
		   .schedule(
		       500 * 365 * 24h, [] {}, error)
		   .is_pending());
	CHECK(error.value() == ERANGE && error.category() == std::generic_category());
	tickwheel::group none;
	REFUSED(EINVAL, none.schedule(
			    1s, [c = counted()] {}, refusal));
	tickwheel::scheduler s(service, tw_scheduler_config{}, error);
	CHECK(!error);
	REFUSED(EBUSY, service.close(TW_CLOSE_DROP, 0s, refusal));
}

void no_throw_from_a_timer(manual_clock &clock, tickwheel::service &service)
{
	std::error_code error = std::make_error_code(std::errc::io_error);
	int runs = 0;
	auto timer = service.schedule(1s, [&] { runs++; });
	CHECK(timer.reset(2s, error) && !error);
	CHECK(!timer.reset_earlier(3s, error) && !error);
	CHECK(timer.reset_earlier(1s, error) && !error);
	CHECK(timer.reset_at(service.now() + 5s, error) && !error);
	CHECK(timer.reset_earlier(1ms, error) && !error);
	REFUSED(ERANGE, CHECK(!timer.reset(500 * 365 * 24h, refusal)));
	clock.advance(3ms);
	CHECK(!timer.reset(1s, error) && !error && runs == 1); /* too late: no error */
	CHECK(!tickwheel::timer().reset(1s, error) && !error);
	auto left = service.schedule(1s, [] {});
	service.close(TW_CLOSE_DROP, 0s);
	REFUSED(ESHUTDOWN, CHECK(!left.reset_at(tickwheel::time_point(1s), refusal)));
	REFUSED(ESHUTDOWN, CHECK(!left.reset_earlier(1ms, refusal)));
}

void no_throw_from_a_strand(manual_clock &clock, tickwheel::service &service)
{
	tickwheel::strand strand(service);
	std::error_code error;
	std::string order;
	strand.schedule(
	    5ms, [&] { order += 'a'; }, error);
	CHECK(!error);
	auto series = strand.every(
	    10ms, [&] { order += '.'; }, error);
	CHECK(!error);
	clock.advance(25ms);
	CHECK(order == "a.." && strand.cancel(series) == tickwheel::outcome::cancelled);
	strand.close();
	REFUSED(ESHUTDOWN, strand.schedule(
			       5ms, [c = counted()] {}, refusal));
	REFUSED(ESHUTDOWN, strand.every(
			       5ms, [c = counted()] {}, refusal));
}

void no_throw_from_a_limiter()
{
	tickwheel::service service;
	std::error_code error;
	tickwheel::limiter none(service, 0, error);
	CHECK(error.value() == EINVAL && !none.get());
	tickwheel::limiter limiter(service, 2, error);
	CHECK(!error && limiter.get());
	REFUSED(EINVAL, limiter.set_max_concurrency(0, refusal));
	limiter.set_max_concurrency(1, error);
	CHECK(!error);
	limiter.pause();
	limiter.submit([c = counted()] { CHECK(false); });
	CHECK(!limiter.wait_idle(1ms, error) && !error);
	REFUSED(EINVAL, CHECK(!none.wait_idle(1ms, refusal)));
	limiter.close(TW_CLOSE_DROP, tickwheel::forever, error);
	CHECK(!error && counted::alive == 0);
	CHECK(limiter.wait_idle(1ms, error) && !error);
	REFUSED(EINVAL, none.close(TW_CLOSE_DROP, 0s, refusal));
}

void no_throw_from_a_scheduler(manual_clock &, tickwheel::service &service)
{
	tw_scheduler_config config = {};
	config.host = TW_HOST_MANUAL;
	tickwheel::scheduler scheduler(service, config);
	std::error_code error;
	int runs = 0;
	scheduler.submit(
	    TW_PRIORITY_NORMAL, [&] { runs++; }, error);
	CHECK(!error);
	scheduler.schedule(
	    1s, TW_PRIORITY_NORMAL, [c = counted()] { CHECK(false); }, error);
	CHECK(!error && counted::alive == 1);
	while (scheduler.run(1, error))
		CHECK(!error);
	CHECK(!error && runs == 1);
	scheduler.close(0s, error);
	CHECK(!error && counted::alive == 0);
	REFUSED(ESHUTDOWN, CHECK(!scheduler.run(1, refusal)));
	REFUSED(ESHUTDOWN, scheduler.submit(
			       TW_PRIORITY_NORMAL, [c = counted()] {}, refusal));
	REFUSED(ESHUTDOWN, scheduler.schedule(
			       1s, TW_PRIORITY_NORMAL, [c = counted()] {}, refusal));
}

} // namespace

int main()
{
	run_tests("errors", {
				errors_are_told,
				no_throw_from_a_timer,
				no_throw_from_a_strand,
				no_throw_from_a_limiter,
				no_throw_from_a_scheduler,
			    });
}
