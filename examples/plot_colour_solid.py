"""
Colours: a hue, and what has none
=================================

Ostwald arranged all colours in a double cone: white at the top, black at the bottom, full
colours on the circle between them, and greys on the axis. Colours differ in hue, lightness
and chroma, the distance from the axis. The solid is not a product of these: the circle of
hues shrinks to a point on the axis. Still the hue separates from the other two. Here are
random colours as three numbers only: from green to red, from blue to yellow, and from black
to white. The fit finds the circle of hues, and the triangle of lightness and chroma.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import hsv_to_rgb

from manifactor import ManifoldFactorizer, scores

rng = np.random.RandomState(0)
box = rng.uniform(-1, 1, size=(20_000, 3))
chroma = np.hypot(box[:, 0], box[:, 1])
X = box[chroma + np.abs(box[:, 2]) < 1][:5000]

fit = ManifoldFactorizer(random_state=0).fit(X)
print("verdict:", fit.verdict_)
for number, factor in enumerate(fit.factors_, start=1):
    print(f"factor {number}: {factor.shape}")
print(fit.evidence_.warp)

# %%
# R^2 with which each factor predicts hue, chroma and lightness:

hue = np.arctan2(X[:, 1], X[:, 0])
chroma, lightness = np.hypot(X[:, 0], X[:, 1]), X[:, 2]
truth = {"hue": np.exp(1j * hue), "chroma": chroma, "lightness": lightness}
for name, values in truth.items():
    columns = np.column_stack([values.real, values.imag]) if name == "hue" else values
    each = [scores.regression_r2(factor.embedding, columns) for factor in fit.factors_]
    print(f"{name}:", ", ".join(f"{r2:.3f}" for r2 in each))

# %%
# Samples on both factors, each in its own colour. Around the circle, colours of all
# lightnesses have their hue; those near the axis, which are grey, have little confidence,
# and are drawn inside. The other factor tells black, white and full colours apart.

full = hsv_to_rgb(np.column_stack([hue % (2 * np.pi) / (2 * np.pi), *np.ones((2, len(X)))]))
rgb = np.clip((1 + lightness[:, None]) / 2 + chroma[:, None] * (full - 0.5), 0, 1)

circle, others = sorted(fit.factors_, key=lambda factor: factor.dimension)
around = np.exp(1j * circle.coordinate) * (0.4 + 0.6 * circle.confidence)
figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
axes[0].scatter(around.real, around.imag, c=rgb, s=4)
axes[0].set(title="circle", aspect="equal", xticks=[], yticks=[])
axes[1].scatter(*others.embedding[:, :2].T, c=rgb, s=4)
axes[1].set(title="surface", xticks=[], yticks=[])
plt.show()
