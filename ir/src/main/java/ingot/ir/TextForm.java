package ingot.ir;

/// The text form of a graph, one line per value.
public final class TextForm {
    private TextForm() {}

    public static String print(Graph graph) {
        StringBuilder text = new StringBuilder("graph ").append(graph.name()).append('\n');
        for (Value value : graph.values()) {
            text.append(value)
                    .append(" : ")
                    .append(value.type())
                    .append(" = ")
                    .append(value.op())
                    .append('\n');
        }
        graph.outputs()
                .forEach((key, value) -> text.append("output ")
                        .append(key)
                        .append(" = ")
                        .append(value)
                        .append('\n'));
        return text.toString();
    }
}
