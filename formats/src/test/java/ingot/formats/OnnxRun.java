package ingot.formats;

import ingot.compiler.Compiler;
import ingot.compiler.Program;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.ir.Graph;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import ingot.store.RamStore;
import ingot.store.WeightStore.Key;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;

/// Runs a graph compiled on the CPU.
final class OnnxRun {
    private OnnxRun() {}

    static Map<String, Tensor> compiled(
            Graph graph, Map<String, Tensor> inputs, Map<String, Tensor> weights, TilePool pool) {
        Program program = Compiler.inference(graph);
        try (RamStore store = new RamStore()) {
            weights.forEach((name, value) -> {
                Key key = Key.weight(name);
                store.create(key, value.type());
                store.pin(key).copyFrom(value.data());
                store.release(key, true);
            });
            try (Executor executor = new Executor(program, new CpuBackend(pool), store)) {
                for (Map.Entry<String, Tensor> input : inputs.entrySet()) {
                    executor.input(input.getKey()).copyFrom(input.getValue().data());
                }
                executor.run(StageUpdates.NONE);
                Map<String, Tensor> results = new LinkedHashMap<>();
                for (String name : graph.outputs().keySet()) {
                    Tensor output = executor.outputTensor(name);
                    Tensor copy = Tensor.zeros(output.type());
                    copy.data().copyFrom(output.data());
                    results.put(name, copy);
                }
                return results;
            }
        }
    }

    /// All weights of a source on the heap.
    static Map<String, Tensor> weights(WeightSource source) {
        Map<String, Tensor> tensors = new LinkedHashMap<>();
        for (Map.Entry<String, Type> entry : source.types().entrySet()) {
            Tensor tensor = Tensor.zeros(entry.getValue());
            MemorySegment data = tensor.data();
            source.read(entry.getKey(), data);
            tensors.put(entry.getKey(), tensor);
        }
        return tensors;
    }

    /// Tensors in memory as the files of somebody.
    static WeightSource source(Map<String, Tensor> tensors) {
        return new WeightSource() {
            @Override
            public SequencedMap<String, Type> types() {
                SequencedMap<String, Type> types = new LinkedHashMap<>();
                tensors.forEach((name, tensor) -> types.put(name, tensor.type()));
                return types;
            }

            @Override
            public void read(String name, MemorySegment target) {
                target.copyFrom(tensors.get(name).data());
            }

            @Override
            public void close() {}
        };
    }
}
