"""Curves of quality against latency: policies over their dials, compared on the same segments.

Comes in: segments of talks, a translator, points (a policy with its values and how often it is asked). Leaves: outcomes
of each point, intervals, comparisons, a picture, the segments that lose. Must not import: Qt, the app.
"""
