// Records what TensorFlow.js computes for small models, for every kind of layer: the reference of KerasTest.
//
//   npm install @tensorflow/tfjs@4.22.0 nsfwjs@4.3.0
//   node keras-reference.mjs keras-cases.json [node_modules/nsfwjs/dist/models/mobilenet_v2 FOLDER]
//
// With more arguments it also writes that model as files to FOLDER, where the test finds it by
// INGOT_NSFW=FOLDER, and prints its probabilities for the picture of the test.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const tf = createRequire(path.join(process.cwd(), 'here.js'))('@tensorflow/tfjs');
const L = tf.layers;
await tf.setBackend('cpu');

// a linear congruential generator of 31 bits
let state = 1n;
function draw(n, low, high) {
  return Float32Array.from({ length: n }, () => {
    state = (state * 1103515245n + 12345n) % 2147483648n;
    return low + (high - low) * (Number(state) / 2147483648);
  });
}
const size = (shape) => shape.reduce((a, b) => a * b, 1);
const base64 = (data) => Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');

const cases = {};
async function record(name, model, dtype) {
  model.setWeights(
    model.weights.map((w) => {
      const variance = w.originalName.endsWith('variance');
      return tf.tensor(draw(size(w.shape), variance ? 0.5 : -0.7, variance ? 1.5 : 0.7), w.shape);
    }),
  );
  const inputs = model.inputs.map((input) => {
    const shape = [2, ...input.shape.slice(1)];
    const values = dtype === 'int32' ? draw(size(shape), 0, 5).map(Math.floor) : draw(size(shape), -2, 2);
    return { name: input.name, dtype: dtype ?? 'float32', shape, values };
  });
  const outputs = [model.predict(inputs.map((i) => tf.tensor(i.values, i.shape, i.dtype)))].flat();
  await model.save(
    tf.io.withSaveHandler(async (saved) => {
      cases[name] = {
        topology: saved.modelTopology,
        weights: saved.weightSpecs,
        data: Buffer.from(saved.weightData).toString('base64'),
        inputs: inputs.map((i) => ({ ...i, values: base64(i.values) })),
        outputs: outputs.map((o) => ({ shape: o.shape, values: base64(o.dataSync()) })),
      };
      return { modelArtifactsInfo: { dateSaved: new Date(0), modelTopologyType: 'JSON' } };
    }),
  );
}

const chain = (name, shape, ...layers) => {
  const input = tf.input({ shape });
  return record(name, tf.model({ inputs: input, outputs: layers.reduce((x, layer) => layer.apply(x), input) }));
};

await chain('dense', [5], L.dense({ units: 4, activation: 'relu' }), L.dense({ units: 3, useBias: false }));
for (const activation of ['elu', 'hardSigmoid', 'linear', 'relu', 'relu6', 'selu', 'sigmoid', 'softmax', 'softplus',
  'softsign', 'tanh', 'swish', 'mish', 'gelu', 'gelu_new']) {
  await chain(`activation-${activation}`, [6], L.activation({ activation }));
}
await chain('relu', [6], L.reLU({ maxValue: 1 }));
await chain('leaky', [6], L.leakyReLU({ alpha: 0.1 }));
await chain('prelu', [2, 3, 2], L.prelu({ sharedAxes: [1, 2] }));
await chain('elu', [6], L.elu({ alpha: 1 }));
await chain('softmax', [3, 4], L.softmax({ axis: -1 }));

await chain('conv1d', [7, 2], L.conv1d({ filters: 3, kernelSize: 3, strides: 2, padding: 'same' }));
await chain('conv2d', [7, 6, 2], L.conv2d({ filters: 3, kernelSize: [3, 2], strides: 2, padding: 'same' }));
await chain('conv2d-valid', [6, 6, 2], L.conv2d({ filters: 3, kernelSize: 3, dilationRate: 2, activation: 'relu' }));
await chain('depthwise', [6, 5, 2], L.depthwiseConv2d({ kernelSize: 3, depthMultiplier: 2, padding: 'same' }));
await chain('separable', [6, 5, 2], L.separableConv2d({ filters: 3, kernelSize: 3, depthMultiplier: 2, strides: 2 }));
await chain('transposed', [3, 4, 2], L.conv2dTranspose({ filters: 3, kernelSize: 3, strides: 2, padding: 'same' }));
await chain('transposed-valid', [3, 4, 2], L.conv2dTranspose({ filters: 2, kernelSize: [2, 3], strides: [3, 2] }));
await chain('conv3d', [3, 4, 3, 2], L.conv3d({ filters: 2, kernelSize: 2, padding: 'same' }));

await chain('maxpool1d', [7, 2], L.maxPooling1d({ poolSize: 3, strides: 2, padding: 'same' }));
await chain('averagepool1d', [7, 2], L.averagePooling1d({ poolSize: 2 }));
await chain('maxpool2d', [5, 6, 2], L.maxPooling2d({ poolSize: [3, 2], strides: 2, padding: 'same' }));
await chain('averagepool2d', [5, 6, 2], L.averagePooling2d({ poolSize: 3, strides: 2, padding: 'same' }));
await chain('globalmax1d', [5, 2], L.globalMaxPooling1d({}));
await chain('globalaverage1d', [5, 2], L.globalAveragePooling1d({}));
await chain('globalmax2d', [5, 3, 2], L.globalMaxPooling2d({}));
await chain('globalaverage2d', [5, 3, 2], L.globalAveragePooling2d({}));
await chain('padcrop', [4, 5, 2], L.zeroPadding2d({ padding: [[1, 2], [0, 3]] }), L.cropping2D({ cropping: [[0, 1], [2, 0]] }));
await chain('upsampling', [2, 3, 2], L.upSampling2d({ size: [2, 3] }));

await chain('batchnorm', [3, 2, 4], L.batchNormalization({ epsilon: 0.01 }));
await chain('batchnorm-plain', [3, 4], L.batchNormalization({ scale: false, center: false }));
await chain('layernorm', [3, 4], L.layerNormalization({}));
await chain('rescaling', [4], L.rescaling({ scale: 0.5, offset: -1 }));

await chain('shapes', [2, 6], L.reshape({ targetShape: [3, 4] }), L.permute({ dims: [2, 1] }), L.flatten(),
  L.repeatVector({ n: 3 }), L.dropout({ rate: 0.5 }), L.gaussianNoise({ stddev: 1 }));

{
  const a = tf.input({ shape: [2, 3] });
  const b = tf.input({ shape: [2, 3] });
  const both = [a, b];
  const outputs = [L.add().apply(both), L.multiply().apply(both), L.average().apply(both), L.maximum().apply(both),
    L.minimum().apply(both), L.concatenate({ axis: 1 }).apply(both), L.dot({ axes: 2 }).apply(both),
    L.dot({ axes: [1, 1], normalize: true }).apply(both)];
  await record('merges', tf.model({ inputs: both, outputs }));
}
await record('embedding', tf.sequential({ layers: [L.embedding({ inputDim: 5, outputDim: 3, inputLength: 4 })] }), 'int32');
await chain('rnn', [4, 3], L.simpleRNN({ units: 2, returnSequences: true }), L.simpleRNN({ units: 3, goBackwards: true }));
await chain('gru', [4, 3], L.gru({ units: 2, returnSequences: true }), L.gru({ units: 3, recurrentActivation: 'sigmoid' }));
await chain('lstm', [4, 3], L.lstm({ units: 2, returnSequences: true }), L.lstm({ units: 3, recurrentActivation: 'sigmoid' }));
await chain('bidirectional', [4, 3], L.bidirectional({ layer: L.lstm({ units: 2, returnSequences: true, recurrentActivation: 'sigmoid' }), mergeMode: 'concat' }),
  L.bidirectional({ layer: L.gru({ units: 2, recurrentActivation: 'sigmoid' }), mergeMode: 'sum' }));
await chain('distributed', [3, 4], L.timeDistributed({ layer: L.dense({ units: 2 }) }));
{
  // a model within a model, a layer that two calls share, and two outputs
  const inner = tf.sequential({ layers: [L.dense({ units: 3, inputShape: [3], activation: 'tanh' }), L.batchNormalization()] });
  const x = tf.input({ shape: [3] });
  const shared = L.dense({ units: 3 });
  const y = shared.apply(inner.apply(shared.apply(x)));
  await record('nested', tf.model({ inputs: x, outputs: [L.add().apply([x, y]), L.dense({ units: 1 }).apply(y)] }));
}
await record('sequential', tf.sequential({ layers: [
  L.conv2d({ filters: 2, kernelSize: 3, inputShape: [6, 6, 1], padding: 'same', useBias: false }),
  L.batchNormalization(), L.reLU(), L.maxPooling2d({}), L.flatten(), L.dense({ units: 3, activation: 'softmax' })] }));

// TensorFlow.js forgets to write it
cases.separable.topology.config.layers[1].config = {
  filters: 3, depth_multiplier: 2, ...cases.separable.topology.config.layers[1].config,
};

const lines = Object.entries(cases).map(([name, each]) => `${JSON.stringify(name)}: ${JSON.stringify(each)}`);
fs.writeFileSync(process.argv[2], `{\n${lines.join(',\n')}\n}\n`);

if (process.argv[3]) {
  // the package has its files as modules: they are written as a layers model
  const require = createRequire(path.resolve(process.argv[3], 'x.js'));
  const json = require('./model.min.js');
  const data = Buffer.from(require('./group1-shard1of1.min.js'), 'base64');
  const folder = process.argv[4] ?? 'nsfw-mobilenet';
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, 'model.json'), JSON.stringify(json));
  fs.writeFileSync(path.join(folder, 'group1-shard1of1'), data);
  const model = await tf.loadLayersModel(tf.io.fromMemory({
    modelTopology: json.modelTopology,
    weightSpecs: json.weightsManifest.flatMap((g) => g.weights),
    weightData: data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength),
  }));
  const shape = [1, ...model.inputs[0].shape.slice(1)];
  // pixel i is ((i · 7919) mod 256) / 255
  const picture = Float32Array.from({ length: size(shape) }, (_, i) => ((i * 7919) % 256) / 255);
  console.log('nsfwjs', shape, Array.from(model.predict(tf.tensor(picture, shape)).dataSync()).join(', '));
}
