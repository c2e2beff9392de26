"""Classifiers in CTranslate2 and ONNX."""
