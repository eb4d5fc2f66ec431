package peers;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;

/**
 * Reads scripts from the input, one after the other, and writes the trace of each, up to a line
 * "end".
 */
public final class Main {
	public static void main(String[] arguments) throws IOException {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		for (Script script; (script = Script.read(in)) != null;) {
			StringBuffer trace = new StringBuffer();
			try {
				if (script.kind.equals("netty"))
					new Wheel(script, trace).play();
				else
					new Executor(script, trace).play();
			} catch (RuntimeException e) {
				trace.append("exception ").append(e).append('\n');
			}
			System.out.print(trace + "end\n");
			System.out.flush();
		}
		System.exit(0);
	}
}
