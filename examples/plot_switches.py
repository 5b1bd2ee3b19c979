"""
Coupled and uncoupled switches: how many independent subsystems?
================================================================

Ten switches turn on and off, each at its own pace. Twenty sensors see mixtures of all of
them, with noise. What is recorded looks like noise with a few steps; how many switches there
are, and which sensors see which of them, is not visible. Two of the switches are then
coupled: one copies the state of the other now and then.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifactor import count_subsystems, plots

n_steps, n_switches, n_sensors = 30_000, 10, 20
flips = np.geomspace(0.01, 0.12, n_switches)  # probability in a step


def switches(copied, rng):
    """Return states of -1 and 1; the second switch copies the first with this probability."""
    flipped, copies = rng.random((n_steps, n_switches)) < flips, rng.random(n_steps) < copied
    states = np.where(np.cumsum(flipped, axis=0) % 2, 1.0, -1.0)
    for t in np.flatnonzero(copies):
        if states[t, 1] != states[t, 0]:
            states[t:, 1] *= -1
    return states


rng = np.random.default_rng(0)
# Each switch is seen by some sensors.
mixture = rng.normal(size=(n_switches, n_sensors)) * (rng.random((n_switches, n_sensors)) < 0.3)
noise = rng.normal(scale=0.4, size=(n_steps, n_sensors))
states = switches(0.0, rng)
X = states @ mixture + noise

figure, axes = plt.subplots(4, 1, figsize=(6.4, 3), sharex=True, layout="constrained")
for sensor, ax in enumerate(axes):
    ax.plot(X[:300, sensor], color=plots.GREY, linewidth=0.8)
    ax.set(yticks=[])
    ax.set_ylabel(f"sensor {sensor}", rotation=0, ha="right", va="center")
axes[-1].set_xlabel("step")
plt.show()

# %%
# Uncoupled switches
# ------------------

found = count_subsystems(X)
print(found)

# Of the switches themselves, without sensors and noise.
exact = -1 / np.log((states[1:] * states[:-1]).mean(axis=0))
scales = np.concatenate(found.time_scales)
figure, axes = plt.subplots(1, 2, figsize=(6.4, 3), layout="constrained")
axes[0].plot(exact, exact, color=plots.GREY)
axes[0].plot(exact, scales, "o", color=plots.colour(0))
axes[0].set(xlabel="true time scale, steps", ylabel="found")
share = axes[1].imshow(found.shares, cmap=plots.SHARE_MAP, vmin=0, vmax=1, aspect="auto")
axes[1].set(xlabel="subsystem", ylabel="sensor")
axes[1].set_xticks(range(found.number), range(1, found.number + 1))
axes[1].set_yticks(range(0, n_sensors, 5))
figure.colorbar(share, label="share of variance")
plt.show()

# %%
# The functions of a subsystem are the switch itself, unmixed.

figure, axes = plt.subplots(4, 1, figsize=(6.4, 3), sharex=True, layout="constrained")
for number, ax in enumerate(axes):
    function = found.functions[number][:, 0]
    sign = np.sign(function @ states[:, number])
    ax.plot(sign * function[:300], color=plots.colour(number), linewidth=0.8)
    ax.plot(states[:300, number], color="black", linewidth=0.8)
    ax.set(ylabel=f"{number + 1}", yticks=[])
axes[-1].set_xlabel("step")
plt.show()

# %%
# With one coupled pair
# ---------------------
#
# Two switches that depend on each other are one subsystem of two functions. It has two
# time scales, and neither of them is that of one switch alone.

coupled = count_subsystems(switches(0.03, rng) @ mixture + noise)
print(coupled.number, "subsystems; functions of each:", [len(t) for t in coupled.time_scales])
