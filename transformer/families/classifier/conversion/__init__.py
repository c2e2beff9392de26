"""Conversion of classifiers to CTranslate2 and ONNX."""
