package ingot.compiler;

import ingot.ir.Graph;
import java.util.function.UnaryOperator;

/// A named rewriting of graphs that keeps every bit of the outputs, their names and the inputs.
record Pass(String name, UnaryOperator<Graph> rewrite) {}
