/// Op, Value, Graph, Type, shape rules, reference interpreter, verifier, text form.
module ingot.ir {
    requires static transitive org.jspecify;

    exports ingot.ir;
}
