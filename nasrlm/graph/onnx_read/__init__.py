"""How each ONNX operator becomes operators of a graph, one file a family."""
