# SPDX-License-Identifier: BSD-3-Clause
"""stable-baselines3: a PPO agent that is trained, saved and loaded on the device."""

from __future__ import annotations

import sys
import tempfile
import warnings

import torch
from stable_baselines3 import PPO

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
torch.set_num_threads(1)
# The warning states that a small model is faster on the CPU. That is true here too.
warnings.filterwarnings("ignore", message="You are trying to run PPO on the GPU")
# [docs: device]
agent = PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=0, device=device)
# [docs: end]
torch.manual_seed(1)  # seeds the device, and the CPU after the weights
agent.learn(192)
weights = agent.policy.state_dict()
print("weights:", {name: value.sum().item() for name, value in weights.items()})
with tempfile.TemporaryDirectory() as folder:
    agent.save(f"{folder}/agent")
    loaded = PPO.load(f"{folder}/agent", device=device)
observation = agent.observation_space.sample() * 0
print("action:", loaded.predict(observation, deterministic=True)[0])
print("device:", loaded.policy.device.type)
