"""Translation models in CTranslate2 and ONNX."""
