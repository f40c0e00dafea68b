"""stable-baselines3: policies with given weights, their losses, and short runs of PPO, A2C, DQN, SAC and TD3."""

import tempfile

import gymnasium
import numpy
import torch
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.env_util import make_vec_env

from .tools import fill, randn


def _policy(algorithm, environment, **options):
    model = algorithm("MlpPolicy", environment, seed=0, device="cpu", **options)
    fill(model.policy)
    return model


def actor_critic_forward():
    model = _policy(PPO, "CartPole-v1", n_steps=8, batch_size=8)
    observations = randn(5, 4)
    values, log_probability, entropy = model.policy.evaluate_actions(observations, torch.tensor([0, 1, 0, 1, 1]))
    action, _ = model.predict(numpy.zeros(4, dtype=numpy.float32), deterministic=True)
    return [values, log_probability, entropy, int(action), model.policy.predict_values(observations)]


def actor_critic_backward():
    model = _policy(A2C, "CartPole-v1")
    values, log_probability, entropy = model.policy.evaluate_actions(randn(5, 4), torch.tensor([0, 1, 0, 1, 1]))
    (values.square().mean() - log_probability.mean() - 0.01 * entropy.mean()).backward()
    return {n: p.grad for n, p in model.policy.named_parameters()}


def continuous_forward():
    sac, td3 = _policy(SAC, "Pendulum-v1"), _policy(TD3, "Pendulum-v1")
    observations, actions = randn(5, 3), torch.tanh(randn(5, 1))
    return [
        sac.actor(observations, deterministic=True),
        sac.critic(observations, actions),
        td3.actor(observations),
        td3.critic(observations, actions),
        sac.actor.get_action_dist_params(observations)[:2],
    ]


def dqn_training():
    """The replay buffer is filled with the same transitions, and sampled from NumPy's generator."""
    model = _policy(
        DQN,
        "CartPole-v1",
        learning_starts=0,
        buffer_size=64,
        batch_size=16,
        target_update_interval=2,
        policy_kwargs={"net_arch": [16]},
    )
    model.policy.optimizer.param_groups[0]["eps"] = 1e-4
    model._setup_learn(16)
    generator = numpy.random.default_rng(0)
    for _ in range(40):
        o, n = generator.standard_normal((2, 1, 4)).astype(numpy.float32)
        model.replay_buffer.add(
            o, n, generator.integers(0, 2, (1, 1)), generator.standard_normal(1), numpy.zeros(1), [{}]
        )
    numpy.random.seed(3)
    model.train(gradient_steps=4, batch_size=16)
    return {n: p.detach() for n, p in model.policy.named_parameters()}


def td3_training():
    model = _policy(
        TD3, "Pendulum-v1", buffer_size=64, batch_size=16, target_policy_noise=0.0, policy_kwargs={"net_arch": [16]}
    )
    for part in (model.actor, model.critic):
        part.optimizer.param_groups[0]["eps"] = 1e-4
    model._setup_learn(16)
    generator = numpy.random.default_rng(0)
    for _ in range(40):
        o, n = generator.standard_normal((2, 1, 3)).astype(numpy.float32)
        model.replay_buffer.add(
            o,
            n,
            generator.uniform(-1, 1, (1, 1)).astype(numpy.float32),
            generator.standard_normal(1),
            numpy.zeros(1),
            [{}],
        )
    numpy.random.seed(3)
    model.train(gradient_steps=4, batch_size=16)
    return {n: p.detach() for n, p in model.policy.named_parameters()}


def learn_training():
    """Actions drawn differ between the libraries; the runs must complete."""
    rows = []
    for algorithm, name, options in (
        (PPO, "CartPole-v1", {"n_steps": 32, "batch_size": 32, "n_epochs": 2}),
        (A2C, "CartPole-v1", {}),
        (DQN, "CartPole-v1", {"learning_starts": 20}),
        (SAC, "Pendulum-v1", {"learning_starts": 20}),
        (TD3, "Pendulum-v1", {"learning_starts": 20}),
    ):
        model = algorithm(
            "MlpPolicy",
            make_vec_env(name, n_envs=2 if algorithm in (PPO, A2C) else 1, seed=0),
            seed=0,
            device="cpu",
            **options,
        )
        model.learn(64)
        rows.append([model.num_timesteps, all(bool(torch.isfinite(p).all()) for p in model.policy.parameters())])
    return rows


def files_other():
    model = _policy(PPO, "CartPole-v1", n_steps=8, batch_size=8)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.zip")
        again = PPO.load(f"{folder}/model.zip", device="cpu")
    return again.policy.predict_values(randn(3, 4))


def image_forward():
    class Images(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(0, 255, (36, 36, 3), numpy.uint8)
        action_space = gymnasium.spaces.Discrete(3)

        def reset(self, **options):
            return self.observation_space.sample(), {}

        def step(self, action):
            return self.observation_space.sample(), 0.0, True, False, {}

    model = fill(PPO("CnnPolicy", Images(), n_steps=4, batch_size=4, seed=0, device="cpu").policy)
    return model.predict_values((torch.sigmoid(randn(2, 3, 36, 36)) * 255).to(torch.uint8))
