"""How each operator is written as ONNX, one file a family."""
