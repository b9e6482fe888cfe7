/// The CPU backend: kernels to JVM bytecode with the Vector API.
module ingot.cpu {
    requires transitive ingot.ir;
    requires ingot.compiler;
    requires java.management;
    requires static jdk.incubator.vector;
    requires static transitive org.jspecify;

    exports ingot.cpu;
}
