"""Language models in CTranslate2 and ONNX."""
