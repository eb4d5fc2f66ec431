/** A rival of the bench on the Java virtual machine: bench/rivals/rival.h has the protocol. */
final class Main {
	private Main() {
	}

	private static int slots(Order order) {
		switch (order.workload) {
		case "trial":
			return Trial.slots();
		case "W4":
			return Fire.slots(order);
		case "W13":
			return order.n;
		default:
			return Load.slots(order);
		}
	}

	/** Netty's classes are looked up only if they are wanted: they may not be installed. */
	private static Timers timers(String name, int slots) throws ReflectiveOperationException {
		if (name.equals("java-stpe"))
			return new Stpe(slots);
		return (Timers) Class.forName("Netty").getDeclaredConstructor(int.class).newInstance(slots);
	}

	private static void work(Order order, Timers timers) throws InterruptedException {
		switch (order.workload) {
		case "trial":
			new Trial(timers).run();
			break;
		case "W1":
		case "W2":
		case "W3":
			new Load(order, timers).run();
			break;
		case "W4":
			new Fire(order, timers).run();
			break;
		case "W13":
			new Apart(order, timers).run();
			break;
		default:
			throw new IllegalArgumentException(order.workload);
		}
	}

	public static void main(String[] arguments) throws Exception {
		Order order = Order.read();
		Timers timers = timers(arguments[0], slots(order));
		work(order, timers);
		System.out.println("end");
		System.out.flush();
		System.exit(0);
	}
}
