/* What an execution context of asio has for its timers: a service, and its alarms. */
#ifndef TICKWHEEL_CPP_ASIO_SERVICE_HPP
#define TICKWHEEL_CPP_ASIO_SERVICE_HPP

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "asio_alarm.hpp"

namespace tickwheel::TICKWHEEL_ASIO_NAMESPACE::detail
{

class timer_service : public net::execution_context::service
{
      public:
	using key_type = timer_service;
	static inline net::execution_context::id id;

	explicit timer_service(net::execution_context &context, tw_service *shared = nullptr)
	    : net::execution_context::service(context), is_own_(!shared), home_{shared, {0}}
	{
		check(begin());
	}
	~timer_service() override
	{
		end();
	}

	tw_service *service() const noexcept
	{
		return home_.service;
	}
	time_point now() const noexcept
	{
		return tickwheel::detail::now_of(service());
	}

	alarm *make_alarm()
	{
		auto *made = new alarm(home_);
		std::lock_guard<std::mutex> guard(mutex_);
		made->next = alarms_;
		if (alarms_)
			alarms_->previous = made;
		alarms_ = made;
		return made;
	}

	/* Blocks. operation_aborted: the service is being closed. */
	error_code wait_until(time_point due)
	{
		struct blocked_thread final : wait {
			std::mutex mutex;
			std::condition_variable changed;
			std::optional<error_code> result;
			void end(const std::optional<error_code> &error) override
			{
				std::lock_guard<std::mutex> guard(
				    mutex); /* else it could be gone */
				result = error.value_or(net::error::operation_aborted);
				changed.notify_one();
			}
		} blocked;
		alarm *own = make_alarm();
		own->start(&blocked, due);
		{
			std::unique_lock<std::mutex> guard(blocked.mutex);
			blocked.changed.wait(guard, [&] { return blocked.result.has_value(); });
		}
		end_alarm(own);
		return *blocked.result;
	}

	/* Its timer goes. */
	void end_alarm(alarm *ended)
	{
		{
			std::lock_guard<std::mutex> guard(mutex_);
			if (ended->next)
				ended->next->previous = ended->previous;
			(ended->previous ? ended->previous->next : alarms_) = ended->next;
		}
		ended->close();
		ended->unref();
	}

	/*
	 * The context goes. Handlers that are destroyed, here or in a callback, may destroy timers:
	 * so the lock is not held then.
	 */
	void shutdown() override
	{
		wait_list dropped;
		{
			std::lock_guard<std::mutex> guard(mutex_);
			for (alarm *a = alarms_; a; a = a->next)
				dropped.append(a->take());
		}
		close();
		dropped.end(std::nullopt);
	}

	/*
	 * asio's rule: no other thread uses the context from prepare to parent or child. Meanwhile
	 * its own service, or its group in a shared one, does not exist. The waits stay.
	 */
	void notify_fork(net::execution_context::fork_event event) override
	{
		if (event == net::execution_context::fork_prepare) {
			close();
			return end();
		}
		int r = begin();
		for (alarm *a = alarms_; a; a = a->next)
			a->rearm(); /* after a failure the waits end with an error */
		if (is_own_)
			check(r);
	}

      private:
	/* Only in a shared service are its timers members of a group. */
	int begin()
	{
		if (!is_own_)
			return tw_group_create(&home_.group, service());
		tw_service_config config = TW_INIT(tw_service_config);
		config.executor = tw_executor_inline(); /* callbacks only post */
		config.thread_name = "tw-asio";
		return tw_service_create(&home_.service, &config);
	}
	static void check(int r)
	{
		if (r)
			throw system_error(code_of(r), "tickwheel: service");
	}
	/* Ends the timers, and waits for callbacks that run. Later timers are refused. */
	void close() noexcept
	{
		if (is_own_) {
			static_cast<void>(tw_service_close(service(), TW_CLOSE_DROP, TW_FOREVER));
			return;
		}
		static_cast<void>(tw_group_close(service(), home_.group, nullptr, nullptr));
		static_cast<void>(tw_group_cancel_wait(service(), home_.group, TW_FOREVER));
	}
	void end() noexcept
	{
		if (is_own_)
			static_cast<void>(
			    tw_service_destroy(std::exchange(home_.service, nullptr)));
		else
			static_cast<void>(tw_group_destroy(service(), home_.group));
	}

	const bool is_own_;
	timer_home home_;
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
