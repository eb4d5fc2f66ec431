/* What an execution context of asio has for its timers: a service, and its alarms. */
#ifndef TICKWHEEL_CPP_ASIO_SERVICE_HPP
#define TICKWHEEL_CPP_ASIO_SERVICE_HPP

#include <memory>
#include <mutex>
#include <utility>

#include "asio_alarm.hpp"

namespace tickwheel::TICKWHEEL_ASIO_NAMESPACE::detail
{

/* One for each context: its service, and its alarms. */
class timer_service : public net::execution_context::service
{
      public:
	using key_type = timer_service;
	static inline net::execution_context::id id;

	explicit timer_service(net::execution_context &context)
	    : net::execution_context::service(context)
	{
		make_own();
	}
	timer_service(net::execution_context &context, tw_service *shared)
	    : net::execution_context::service(context), service_(shared)
	{
	}
	~timer_service() override
	{
		static_cast<void>(tw_service_destroy(own_));
	}

	tw_service *service() const noexcept
	{
		return service_;
	}
	time_point now() const noexcept
	{
		return tickwheel::detail::now_of(service_);
	}

	alarm *make_alarm()
	{
		auto *made = new alarm(service_, callbacks_);
		std::lock_guard<std::mutex> guard(mutex_);
		made->next = alarms_;
		if (alarms_)
			alarms_->previous = made;
		alarms_ = made;
		return made;
	}

	/* Its timer goes. */
	void end_alarm(alarm *ended)
	{
		unlink(ended);
		ended->close().complete(net::error::operation_aborted);
		ended->unref();
	}

	/*
	 * The context goes. Handlers are destroyed, and may destroy timers; the callbacks that are
	 * waited for may do so, too. So the lock is not held then.
	 */
	void shutdown() override
	{
		wait_list dropped;
		{
			std::lock_guard<std::mutex> guard(mutex_);
			for (alarm *a = alarms_; a; a = a->next)
				dropped.append(a->close());
		}
		callbacks_->wait();
		dropped.destroy();
	}

	/*
	 * asio's rule: no other thread uses the context from prepare to parent or child. The tick
	 * thread waits meanwhile, so no alarm is locked or half written at the fork.
	 */
	void notify_fork(net::execution_context::fork_event event) override
	{
		if (!own_)
			return;
		if (event == net::execution_context::fork_prepare) {
			callbacks_->stop();
			return;
		}
		callbacks_->go_on();
		if (event != net::execution_context::fork_child)
			return;
		tw_service *parents = own_;
		make_own(); /* or throws: calls on the parent's return -EPERM */
		static_cast<void>(tw_service_destroy(parents));
		for (alarm *a = alarms_; a; a = a->next)
			a->move_to(own_);
	}

      private:
	void make_own()
	{
		tw_service_config config = {};
		config.size = sizeof config;
		config.executor = tw_executor_inline(); /* callbacks only post */
		config.thread_name = "tw-asio";
		int r = tw_service_create(&own_, &config);
		if (r)
			throw system_error(code_of(r), "tickwheel: service");
		service_ = own_;
	}

	void unlink(alarm *ended) noexcept
	{
		std::lock_guard<std::mutex> guard(mutex_);
		if (ended->next)
			ended->next->previous = ended->previous;
		if (ended->previous)
			ended->previous->next = ended->next;
		else
			alarms_ = ended->next;
	}

	tw_service *own_ = nullptr;
	tw_service *service_ = nullptr;
	const std::shared_ptr<callbacks> callbacks_ = std::make_shared<callbacks>();
	std::mutex mutex_;
	alarm *alarms_ = nullptr;
};

template <class Executor> timer_service &service_of(const Executor &executor)
{
	net::execution_context &context = net::query(executor, net::execution::context);
	return net::use_service<timer_service>(context);
}

} // namespace tickwheel::TICKWHEEL_ASIO_NAMESPACE::detail

#endif
