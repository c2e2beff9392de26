"""Conversion of translation models to CTranslate2 and ONNX."""
