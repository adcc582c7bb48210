"""Translators: prompt layout and source map, models that draft with attention rows, and the translation session.

Comes in: source units and released target tokens. Leaves: drafts (`contract.Translator`) and caption states
(`contract.TranslationSession`). Must not import: Qt, the app, the recognisers' models.
"""
