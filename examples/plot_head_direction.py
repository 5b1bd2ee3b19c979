"""
Neurons: head direction and speed
=================================

Spike counts of 70 simulated neurons while an animal runs about. 40 of them are head
direction cells, each with its preferred direction; 30 are speed cells, whose rates grow
with the running speed. Direction and speed vary independently, so that the states of
this population lie on a product of a circle and an interval. The fit is not told which
cell is of which kind, nor that there are two kinds.
"""

import matplotlib.pyplot as plt
import numpy as np

from data_sets import direction_and_speed
from manifactor import ManifoldFactorizer, plots
from manifactor.scores import regression_r2

counts, (direction, speed) = direction_and_speed(2000)
counts = counts[:, np.random.default_rng(0).permutation(counts.shape[1])]

figure, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
ax.imshow(counts[:150].T, aspect="auto", cmap="magma")
ax.set(xlabel="time window", ylabel="cell", title="spike counts")
plt.show()

# %%
# Counts have Poisson noise, which grows with the rate. Square roots of counts have the
# same noise at all rates, and are the better columns for anything that rests on
# distances.

fit = ManifoldFactorizer(random_state=0).fit(np.sqrt(counts))
print("verdict:", fit.verdict_)
for factor in fit.factors_:
    print(factor)
print(fit.choices_["preparation"].why)

# %%
# The circle is the direction, and the interval is the speed.

circle, interval = sorted(fit.factors_, key=lambda factor: factor.topology)
angle = np.degrees(np.arctan2(direction[:, 1], direction[:, 0])) % 360

figure, axes = plt.subplots(1, 3, figsize=(8, 2.8), layout="constrained")
plots.place(axes[0], circle.embedding, direction)
axes[0].set_title("circle, by true direction")
axes[1].scatter(angle, np.degrees(circle.coordinate), s=1, color=plots.colour(0))
axes[1].set(xlabel="true direction, degrees", ylabel="found angle")
axes[2].scatter(speed[:, 0], interval.coordinate, s=1, color=plots.colour(1))
axes[2].set(xlabel="true speed", ylabel="found coordinate")
plt.show()

print(f"direction: R^2 {regression_r2(circle.embedding, direction):.3f}")
print(f"speed: R^2 {regression_r2(interval.embedding, speed):.3f}")

# %%
# Tuning curves come without knowing what the animal did: mean counts of each cell along
# each factor. Cells of one kind vary along one factor only.

tuning = []
for factor, end in ((circle, 2 * np.pi), (interval, 1.0)):
    part = np.minimum((12 * factor.coordinate / end).astype(int), 11)
    tuning.append(np.array([counts[part == k].mean(axis=0) for k in range(12)]))
along_circle, along_interval = (means.std(axis=0) for means in tuning)

figure, ax = plt.subplots(figsize=(3.6, 3.2), layout="constrained")
ax.scatter(along_circle, along_interval, s=12, color=plots.INK)
ax.set(xlabel="spread along the circle", ylabel="spread along the interval")
ax.set_title("each point a cell")
plt.show()
