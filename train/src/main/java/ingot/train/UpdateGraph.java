package ingot.train;

import ingot.ir.GraphBuilder;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;

/// An optimizer's graph under construction: flat arrays and scalars by name.
record UpdateGraph(GraphBuilder builder, Type type) {
    UpdateGraph(String name, int elements) {
        this(new GraphBuilder(name), Type.f32(elements));
    }

    Value input(String name) {
        return builder.input(name, type);
    }

    Value scalar(String name) {
        return builder.input(name, type.with(Shape.SCALAR));
    }

    /// The gradient after clipping.
    Value gradient() {
        return builder.multiply(input("gradient"), scalar("scale"));
    }

    /// The clipped gradient plus the decay of L2 regularisation.
    Value decayedGradient(Value w, double weightDecay) {
        Value g = gradient();
        return weightDecay > 0 ? builder.add(g, builder.multiply(w, weightDecay)) : g;
    }
}
