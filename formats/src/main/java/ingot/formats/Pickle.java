package ingot.formats;

import ingot.ir.IngotException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Reads a pickle as data: numbers, texts, lists, tuples and dicts, and what `Globals` knows. It never runs anything.
///
/// The format is the stack machine of Python's `pickletools`, protocols 0 to 5. A global that is not known is refused
/// by its name where it is mentioned, before anything is done with it. Values are null, Boolean, Long, Double, String,
/// byte[], List (also for tuples and sets), Map, and what `Globals` makes.
final class Pickle {
    private final String where;
    private final ByteBuffer in;
    private final Globals globals;
    private final Deque<List<@Nullable Object>> marked = new ArrayDeque<>();
    private final Map<Integer, @Nullable Object> memo = new HashMap<>();
    private List<@Nullable Object> stack = new ArrayList<>();

    /// The few names a pickle may use.
    interface Globals {
        /// What stands for `module.name`; an exception if it is not known.
        Object find(String module, String name);

        /// What a call of such a thing gives.
        @Nullable
        Object call(Object function, List<@Nullable Object> arguments);

        /// What a persistent id stands for.
        Object persistent(@Nullable Object id);
    }

    private Pickle(String where, byte[] bytes, Globals globals) {
        this.where = where;
        this.in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        this.globals = globals;
    }

    static @Nullable Object read(String where, byte[] bytes, Globals globals) {
        return new Pickle(where, bytes, globals).run();
    }

    private @Nullable Object run() {
        while (in.hasRemaining()) {
            int at = in.position();
            int op = in.get() & 0xFF;
            if (op == '.') {
                return pop();
            }
            try {
                step(op, at);
            } catch (java.nio.BufferUnderflowException | IndexOutOfBoundsException e) {
                throw wrong("is truncated at byte " + at, e);
            } catch (ArithmeticException | NumberFormatException | ClassCastException e) {
                throw wrong("has a wrong operand at byte " + at, e);
            }
        }
        throw wrong("ends without its last instruction; it is truncated", null);
    }

    private void step(int op, int at) {
        switch (op) {
            case 0x80 -> in.get(); // PROTO
            case 0x95 -> in.getLong(); // FRAME: its length only helps to read ahead
            case '(' -> {
                marked.push(stack);
                stack = new ArrayList<>();
            }
            case '0' -> pop();
            case '1' -> items();
            case '2' -> push(top());
            case 'N' -> push(null);
            case 0x88 -> push(true);
            case 0x89 -> push(false);
            case 'I' -> {
                String line = line();
                push(line.equals("01") ? (Object) true : line.equals("00") ? (Object) false : Long.parseLong(line));
            }
            case 'J' -> push((long) in.getInt());
            case 'K' -> push((long) (in.get() & 0xFF));
            case 'M' -> push((long) (in.getShort() & 0xFFFF));
            case 'L' -> {
                String line = line();
                push(Long.parseLong(line.endsWith("L") ? line.substring(0, line.length() - 1) : line));
            }
            case 0x8a -> push(number(bytes(in.get() & 0xFF)));
            case 0x8b -> push(number(bytes(in.getInt())));
            case 'F' -> push(Double.parseDouble(line()));
            case 'G' -> push(Double.longBitsToDouble(Long.reverseBytes(in.getLong())));
            case 'S' -> {
                String line = line();
                if (line.length() < 2) {
                    throw new NumberFormatException("quotes");
                }
                push(line.substring(1, line.length() - 1));
            }
            case 'T' -> push(new String(bytes(in.getInt()), StandardCharsets.ISO_8859_1));
            case 'U' -> push(new String(bytes(in.get() & 0xFF), StandardCharsets.ISO_8859_1));
            case 'V' -> push(line());
            case 'X' -> push(text(in.getInt()));
            case 0x8c -> push(text(in.get() & 0xFF));
            case 0x8d -> push(text(Math.toIntExact(Math.min(in.getLong() & Long.MAX_VALUE, Integer.MAX_VALUE))));
            case 'B' -> push(bytes(in.getInt()));
            case 'C' -> push(bytes(in.get() & 0xFF));
            case ']', 0x8f -> push(new ArrayList<@Nullable Object>());
            case 'a' -> {
                Object item = pop();
                list().add(item);
            }
            case 'e', 0x90 -> {
                List<@Nullable Object> items = items();
                list().addAll(items);
            }
            case 'l' -> push(items());
            case ')' -> push(List.of());
            case 't', 0x91 -> push(Collections.unmodifiableList(items()));
            case 0x85 -> push(tuple(1));
            case 0x86 -> push(tuple(2));
            case 0x87 -> push(tuple(3));
            case '}' -> push(new LinkedHashMap<@Nullable Object, @Nullable Object>());
            case 'd' -> {
                List<@Nullable Object> items = items();
                push(new LinkedHashMap<@Nullable Object, @Nullable Object>());
                put(items);
            }
            case 's' -> {
                Object value = pop();
                Object key = pop();
                put(Collections.unmodifiableList(java.util.Arrays.asList(key, value)));
            }
            case 'u' -> put(items());
            case 'g' -> push(recall(Integer.parseInt(line())));
            case 'h' -> push(recall(in.get() & 0xFF));
            case 'j' -> push(recall(in.getInt()));
            case 'p' -> memo.put(Integer.parseInt(line()), top());
            case 'q' -> memo.put(in.get() & 0xFF, top());
            case 'r' -> memo.put(in.getInt(), top());
            case 0x94 -> memo.put(memo.size(), top());
            case 'c' -> {
                String module = line();
                push(globals.find(module, line()));
            }
            case 0x93 -> {
                String name = (String) object(pop());
                push(globals.find((String) object(pop()), name));
            }
            case 'R', 0x81 -> {
                List<@Nullable Object> arguments = sequence(pop());
                push(globals.call(object(pop()), arguments));
            }
            case 'b' -> build(at);
            case 'Q' -> push(globals.persistent(pop()));
            case 'P' -> push(globals.persistent(line()));
            default ->
                throw wrong(
                        "has the instruction 0x" + Integer.toHexString(op) + " at byte " + at + ", which no data needs",
                        null);
        }
    }

    /// Attributes of a dict, as the versions in a state dict: not needed.
    private void build(int at) {
        pop();
        if (!(top() instanceof Map<?, ?>)) {
            throw wrong("sets attributes of something that is no dict at byte " + at, null);
        }
    }

    private void put(List<@Nullable Object> items) {
        if (items.size() % 2 != 0) {
            throw new ClassCastException("a key without a value");
        }
        Map<@Nullable Object, @Nullable Object> map = map();
        for (int i = 0; i < items.size(); i += 2) {
            Object key = items.get(i);
            if (!(key == null || key instanceof String || key instanceof Long || key instanceof Boolean)) {
                throw wrong("has a dict whose keys are neither texts nor numbers", null);
            }
            map.put(key, items.get(i + 1));
        }
    }

    @SuppressWarnings("unchecked") // what is on the stack was made here
    private Map<@Nullable Object, @Nullable Object> map() {
        return (Map<@Nullable Object, @Nullable Object>) object(top());
    }

    @SuppressWarnings("unchecked") // likewise
    private List<@Nullable Object> list() {
        Object top = top();
        if (!(top instanceof ArrayList<?>)) {
            throw new ClassCastException("no list");
        }
        return (List<@Nullable Object>) top;
    }

    @SuppressWarnings("unchecked") // likewise
    private static List<@Nullable Object> sequence(@Nullable Object value) {
        return (List<@Nullable Object>) object(value);
    }

    private static Object object(@Nullable Object value) {
        if (value == null) {
            throw new ClassCastException("None");
        }
        return value;
    }

    private List<@Nullable Object> tuple(int size) {
        List<@Nullable Object> last = stack.subList(stack.size() - size, stack.size());
        List<@Nullable Object> tuple = Collections.unmodifiableList(new ArrayList<>(last));
        last.clear();
        return tuple;
    }

    /// What was pushed since the last mark.
    private List<@Nullable Object> items() {
        if (marked.isEmpty()) {
            throw new IndexOutOfBoundsException("no mark");
        }
        List<@Nullable Object> items = stack;
        stack = marked.pop();
        return items;
    }

    private @Nullable Object recall(int index) {
        if (!memo.containsKey(index)) {
            throw new IndexOutOfBoundsException("memo");
        }
        return memo.get(index);
    }

    private void push(@Nullable Object value) {
        stack.add(value);
    }

    private @Nullable Object pop() {
        Object top = top();
        stack.removeLast();
        return top;
    }

    private @Nullable Object top() {
        if (stack.isEmpty()) {
            throw wrong("takes from an empty stack at byte " + (in.position() - 1), null);
        }
        return stack.getLast();
    }

    private byte[] bytes(int count) {
        if (count < 0 || count > in.remaining()) {
            throw new IndexOutOfBoundsException(count);
        }
        byte[] bytes = new byte[count];
        in.get(bytes);
        return bytes;
    }

    private String text(int count) {
        return new String(bytes(count), StandardCharsets.UTF_8);
    }

    /// Little-endian two's complement.
    private static long number(byte[] bytes) {
        if (bytes.length > Long.BYTES) {
            throw new NumberFormatException(bytes.length + " bytes");
        }
        byte[] reversed = new byte[bytes.length];
        for (int i = 0; i < bytes.length; i++) {
            reversed[i] = bytes[bytes.length - 1 - i];
        }
        return reversed.length == 0 ? 0 : new BigInteger(reversed).longValueExact();
    }

    private String line() {
        StringBuilder line = new StringBuilder();
        for (char c = (char) (in.get() & 0xFF); c != '\n'; c = (char) (in.get() & 0xFF)) {
            line.append(c);
        }
        return line.toString();
    }

    private IngotException wrong(String what, @Nullable Exception cause) {
        String message = where + ": its pickle " + what;
        return cause == null ? new IngotException(message) : new IngotException(message, cause);
    }
}
