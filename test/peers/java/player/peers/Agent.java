package peers;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;

/**
 * Lets the two classes under comparison call VirtualTime in place of System.nanoTime and
 * Thread.sleep. Nothing else of them changes: the references to these two methods in the constant
 * pool get another class.
 */
public final class Agent implements ClassFileTransformer {
	private static final int UTF8 = 1, INTEGER = 3, FLOAT = 4, LONG = 5, DOUBLE = 6, CLASS = 7, STRING = 8, METHOD = 10,
		NAME_AND_TYPE = 12, METHOD_HANDLE = 15, METHOD_TYPE = 16, MODULE = 19, PACKAGE = 20;

	public static void premain(String arguments, Instrumentation instrumentation) {
		instrumentation.addTransformer(new Agent());
	}

	@Override
	public byte[] transform(ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
		if (name == null || !(name.startsWith("java/util/concurrent/ScheduledThreadPoolExecutor")
				|| name.startsWith("io/netty/util/HashedWheelTimer")))
			return null;
		try {
			return redirect(bytes);
		} catch (IOException e) {
			throw new IllegalStateException(e);
		}
	}

	private static byte[] redirect(byte[] bytes) throws IOException {
		DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
		in.skipBytes(8);
		int count = in.readUnsignedShort();
		int[] tags = new int[count], first = new int[count], second = new int[count], at = new int[count];
		String[] texts = new String[count];
		for (int i = 1; i < count; i++) {
			at[i] = bytes.length - in.available();
			tags[i] = in.readUnsignedByte();
			switch (tags[i]) {
			case UTF8 -> texts[i] = in.readUTF();
			case LONG, DOUBLE -> {
				in.skipBytes(8);
				i++;
			}
			case CLASS, STRING, METHOD_TYPE, MODULE, PACKAGE -> first[i] = in.readUnsignedShort();
			case METHOD_HANDLE -> in.skipBytes(3);
			case INTEGER, FLOAT -> in.skipBytes(4);
			default -> {
				first[i] = in.readUnsignedShort();
				second[i] = in.readUnsignedShort();
			}
			}
		}
		int end = bytes.length - in.available();
		byte[] head = bytes.clone();
		for (int i = 1; i < count; i++)
			if (tags[i] == METHOD && tags[second[i]] == NAME_AND_TYPE
					&& isTime(texts[first[first[i]]], texts[first[second[i]]], texts[second[second[i]]])) {
				head[at[i] + 1] = (byte) ((count + 1) >> 8);
				head[at[i] + 2] = (byte) (count + 1);
			}
		head[8] = (byte) ((count + 2) >> 8);
		head[9] = (byte) (count + 2);
		ByteArrayOutputStream out = new ByteArrayOutputStream();
		DataOutputStream data = new DataOutputStream(out);
		data.write(head, 0, end);
		data.writeByte(UTF8);
		data.writeUTF("peers/VirtualTime");
		data.writeByte(CLASS);
		data.writeShort(count);
		data.write(bytes, end, bytes.length - end);
		return out.toByteArray();
	}

	private static boolean isTime(String owner, String method, String type) {
		return owner.equals("java/lang/System") && method.equals("nanoTime")
			|| owner.equals("java/lang/Thread") && method.equals("sleep") && type.equals("(J)V");
	}
}
