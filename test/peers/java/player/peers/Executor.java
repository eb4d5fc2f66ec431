package peers;

import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.RunnableScheduledFuture;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Java's executor. Its thread factory makes no threads, which the class allows. This thread takes
 * what is due off its queue and runs it, so all is exact. Times are in ticks of 100 us.
 */
final class Executor implements Script.Player {
	private static final long TICK_NS = 100_000;

	private final Script script;
	private final StringBuffer trace;
	private final ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(1, work -> null);
	private final long begun = VirtualTime.nanoTime();
	private final Map<Integer, ScheduledFuture<?>> futures = new HashMap<>();
	private final Map<Integer, Boolean> series = new HashMap<>();
	private int running = -1;

	Executor(Script script, StringBuffer trace) {
		this.script = script;
		this.trace = trace;
	}

	private void say(String line) {
		trace.append(line).append('\n');
	}

	private void fire(int id) {
		int outer = running;
		say((series.get(id) ? "series " : "run ") + id + " at " + (VirtualTime.nanoTime() - begun) / TICK_NS);
		running = id;
		script.run(id, this);
		running = outer;
	}

	private void schedule(Script.Step step) {
		int id = step.arg(0);
		long first = step.arg(1) * TICK_NS, period = step.arg(2) * TICK_NS;
		if (series.containsKey(id))
			return;
		series.put(id, !step.op().equals("at"));
		try {
			futures.put(id, switch (step.op()) {
			case "at" -> executor.schedule(() -> fire(id), first, TimeUnit.NANOSECONDS);
			case "rate" -> executor.scheduleAtFixedRate(() -> fire(id), first, period, TimeUnit.NANOSECONDS);
			default -> executor.scheduleWithFixedDelay(() -> fire(id), first, period, TimeUnit.NANOSECONDS);
			});
		} catch (RejectedExecutionException e) {
			say("refused " + id);
		}
	}

	private void cancel(int id, boolean forced) {
		if (!series.containsKey(id) || (running == id && !series.get(id) && !forced))
			return;
		ScheduledFuture<?> future = futures.get(id);
		say("cancel " + id + " " + (future != null && future.cancel(false) ? 1 : 0));
	}

	private void runDue() {
		for (Runnable task; (task = executor.getQueue().poll()) != null;)
			task.run();
	}

	private void advanceTo(long to) {
		for (Runnable head; (head = executor.getQueue().peek()) != null;) {
			long due = VirtualTime.nanoTime() + ((RunnableScheduledFuture<?>) head).getDelay(TimeUnit.NANOSECONDS);
			if (due > to)
				break;
			VirtualTime.set(Math.max(VirtualTime.nanoTime(), due));
			runDue();
		}
		VirtualTime.set(to);
	}

	private void stop() {
		if (executor.isShutdown())
			return;
		TreeSet<Integer> left = new TreeSet<>();
		for (Runnable task : executor.shutdownNow())
			futures.forEach((id, future) -> {
				if (future == task && !future.isCancelled())
					left.add(id);
			});
		left.forEach(id -> say("left " + id));
	}

	@Override
	public void step(Script.Step step, boolean inside) {
		long to = VirtualTime.nanoTime() + step.arg(0) * TICK_NS;
		switch (step.op()) {
		case "at", "rate", "delay" -> schedule(step);
		case "cancel", "cancel!" -> cancel(step.arg(0), step.op().endsWith("!"));
		case "advance" -> advanceTo(to);
		case "stall" -> {
			VirtualTime.set(to);
			runDue();
		}
		case "stop" -> stop();
		default -> { }
		}
	}

	void play() {
		script.play(this, trace);
		say("> -1"); // what follows is not compared
		stop();
	}
}
