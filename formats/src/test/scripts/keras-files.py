"""Writes models of keras-cases.json in the layouts of Keras 2 (.h5) and Keras 3 (.keras), after the sources of Keras
(legacy_h5_format.py, saving_lib.py): what KerasTest reads them back against.

    apt-get install python3-h5py
    python3 keras-files.py keras-cases.json FOLDER
"""
import base64
import copy
import io
import json
import re
import sys
import zipfile

import h5py
import numpy

STATISTICS = ("moving_mean", "moving_variance")


def arrays(case):
    data = base64.b64decode(case["data"])
    found, at = {}, 0
    for spec in case["weights"]:
        count = int(numpy.prod(spec["shape"]))
        found[spec["name"]] = numpy.frombuffer(data, "<f4", count, at).reshape(spec["shape"])
        at += 4 * count
    return found


def own(layer, weights):
    """The arrays of a layer that is no model, in the order of its variables."""
    name = layer["config"]["name"]
    return [(key, value) for key, value in weights.items() if key.split("/")[0] == name]


def leaves(layer):
    if "layers" in layer["config"]:
        return [leaf for inner in layer["config"]["layers"] for leaf in leaves(inner)]
    return [layer]


def h5(case, path):
    weights = arrays(case)
    config = copy.deepcopy(case["topology"])
    model = {"class_name": config["class_name"].replace("Model", "Functional"), "config": config["config"]}
    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = json.dumps(model).encode()
        file.attrs["keras_version"] = b"2.15.0"
        file.attrs["backend"] = b"tensorflow"
        group = file.create_group("model_weights")
        layers = model["config"]["layers"]
        group.attrs["layer_names"] = [layer["config"]["name"].encode() for layer in layers]
        for layer in layers:
            all_weights = [pair for leaf in leaves(layer) for pair in own(leaf, weights)]
            learned = [pair for pair in all_weights if not pair[0].endswith(STATISTICS)]
            ordered = learned + [pair for pair in all_weights if pair[0].endswith(STATISTICS)]
            inner = group.create_group(layer["config"]["name"])
            inner.attrs["weight_names"] = [(key + ":0").encode() for key, _ in ordered]
            for key, value in ordered:
                inner.create_dataset(key + ":0", data=value)


def snake(name):
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def tensor(port):
    return {"class_name": "__keras_tensor__", "config": {"shape": [], "dtype": "float32", "keras_history": port[:3]}}


def third(layer):
    """The entry of a layer as Keras 3 writes it."""
    config = layer["config"]
    layer["module"] = "keras.layers"
    layer["registered_name"] = None
    if layer["class_name"] == "Model":
        layer["class_name"] = "Functional"
    if "batch_input_shape" in config:
        config["batch_shape"] = config.pop("batch_input_shape")
    if layer["class_name"] == "GRU":
        config["reset_after"] = False
    for key in ("input_layers", "output_layers"):
        if key in config and len(config[key]) == 1:
            config[key] = config[key][0]
    if "layer" in config:
        third(config["layer"])
    nodes = []
    for node in layer.get("inbound_nodes", []):
        tensors = [tensor(port) for port in node]
        nodes.append({"args": tensors if len(tensors) == 1 else [tensors], "kwargs": {}})
    if nodes:
        layer["inbound_nodes"] = nodes
    for inner in config.get("layers", []):
        third(inner)
    return layer


def variables(file, path, layer, weights):
    if "layers" in layer["config"]:
        file.require_group(path + "/vars" if path else "vars")
        counts = {}
        for inner in layer["config"]["layers"]:
            name = snake(inner["class_name"])
            counts[name] = counts.get(name, -1) + 1
            counted = name if counts[name] == 0 else f"{name}_{counts[name]}"
            if inner["class_name"] != "InputLayer":
                variables(file, f"{path}/layers/{counted}".strip("/"), inner, weights)
        return
    values = [value for _, value in own(layer, weights)]
    places = [path]
    if layer["class_name"] == "Bidirectional":
        places = [path + "/forward_layer/cell", path + "/backward_layer/cell"]
    each = len(values) // len(places)
    for i, place in enumerate(places):
        group = file.create_group(place + "/vars")
        for k, value in enumerate(values[i * each : (i + 1) * each]):
            group.create_dataset(str(k), data=value)


def keras(case, path):
    model = third({"class_name": case["topology"]["class_name"], "config": copy.deepcopy(case["topology"]["config"])})
    memory = io.BytesIO()
    with h5py.File(memory, "w") as file:
        variables(file, "", model, arrays(case))
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (
            ("metadata.json", json.dumps({"keras_version": "3.8.0", "date_saved": "2025-01-01@00:00:00"})),
            ("config.json", json.dumps(model)),
            ("model.weights.h5", memory.getvalue()),
        ):
            archive.writestr(zipfile.ZipInfo(name), data)


cases = json.load(open(sys.argv[1]))
for chosen in ("sequential", "nested", "bidirectional"):
    h5(cases[chosen], f"{sys.argv[2]}/keras-{chosen}.h5")
    keras(cases[chosen], f"{sys.argv[2]}/keras-{chosen}.keras")
